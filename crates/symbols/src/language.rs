//! The languages that can be read, by the ends of file names.

/// A language that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Rust.
    Rust,
    /// TypeScript.
    TypeScript,
    /// TypeScript with markup, and JavaScript, which is nearly the same.
    Tsx,
    /// Python.
    Python,
    /// Go.
    Go,
}

impl Language {
    /// The language of a file, by its name.
    pub fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let (stem, end) = name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        Some(match end {
            "rs" => Self::Rust,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" | "jsx" | "js" | "mjs" | "cjs" => Self::Tsx,
            "py" | "pyi" => Self::Python,
            "go" => Self::Go,
            _ => return None,
        })
    }

    /// Whether code of one can call code of the other.
    pub fn speaks(self, other: Self) -> bool {
        let web = |language| matches!(language, Self::TypeScript | Self::Tsx);
        self == other || (web(self) && web(other))
    }

    pub(crate) fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_its_files() {
        for (path, language) in [
            ("src/a.rs", Some(Language::Rust)),
            ("a/b.d.ts", Some(Language::TypeScript)),
            ("x.jsx", Some(Language::Tsx)),
            ("x.py", Some(Language::Python)),
            ("x.go", Some(Language::Go)),
            ("x.txt", None),
            (".rs", None),
            ("rs", None),
        ] {
            assert_eq!(Language::of(path), language, "{path}");
        }
        assert!(Language::Tsx.speaks(Language::TypeScript));
        assert!(!Language::Go.speaks(Language::Rust));
    }
}
