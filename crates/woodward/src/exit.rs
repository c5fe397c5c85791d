//! The exit codes: one list, which `woodward help exit-codes` prints.

use woodward_api::Code;

macro_rules! exits {
    ($($(#[doc = $meaning:literal])+ $name:ident = $number:literal,)+) => {
        /// How a command ended, for whoever started it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Exit {
            $($(#[doc = $meaning])+ $name = $number,)+
        }

        impl Exit {
            /// Every code with its meaning.
            pub(crate) const ALL: &'static [(Self, &'static str)] =
                &[$((Self::$name, concat!($($meaning),+)),)+];
        }
    };
}

exits! {
    /// it was done
    Ok = 0,
    /// it failed
    Failed = 1,
    /// the command line makes no sense
    Usage = 2,
    /// the daemon can't be reached
    Unreachable = 3,
    /// someone must log in first
    Auth = 4,
    /// there is no such task or project, or more than one
    NotFound = 5,
    /// a gate failed
    GateFailed = 10,
    /// changes do not fit together
    Conflict = 11,
    /// only a person can help
    NeedsPerson = 12,
    /// a limit or a budget was reached
    Limit = 13,
    /// a bug of Woodward's
    Internal = 70,
    /// the time limit was reached
    Timeout = 124,
    /// interrupted by Ctrl-C
    Interrupted = 130,
}

impl Exit {
    /// The number the shell sees.
    pub(crate) const fn number(self) -> u8 {
        self as u8
    }
}

impl From<Code> for Exit {
    fn from(code: Code) -> Self {
        match code {
            Code::Usage => Self::Usage,
            Code::NotFound => Self::NotFound,
            Code::WrongState | Code::Unavailable | Code::Forbidden => Self::Failed,
            Code::GateFailed => Self::GateFailed,
            Code::Conflict => Self::Conflict,
            Code::NeedsPerson => Self::NeedsPerson,
            Code::Limit => Self::Limit,
            Code::Internal => Self::Internal,
        }
    }
}
