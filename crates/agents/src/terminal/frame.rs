//! What clients and hosts say to each other: a kind, a length, that many bytes.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::pty::Size;

/// The longest payload; a longer one is no frame.
pub(super) const FRAME_MAX: usize = 4 << 20;
/// The longest piece of input that a client sends at once.
pub(super) const INPUT_MAX: usize = 64 << 10;

/// The first byte of a client's first frame: what it speaks.
const VERSION: u8 = 1;

/// One thing said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Client: who I am. The first frame, and the only first one.
    Hello {
        /// It only looks.
        read_only: bool,
        /// Whether a person is there; a pane that nobody looks at is not.
        present: bool,
        /// Its size.
        size: Size,
    },
    /// Client: somebody typed this.
    Input(Vec<u8>),
    /// Client: it has another size now.
    Resize(Size),
    /// Client: whether a person is there has changed.
    Presence(bool),
    /// Host: print this.
    Output(Vec<u8>),
    /// Host: the program has ended; nothing follows.
    Ended,
}

impl Frame {
    fn parts(&self) -> (u8, Vec<u8>) {
        let size_bytes = |size: &Size| {
            let mut bytes = size.rows.to_be_bytes().to_vec();
            bytes.extend_from_slice(&size.cols.to_be_bytes());
            bytes
        };
        match self {
            Self::Hello {
                read_only,
                present,
                size,
            } => {
                let mut bytes = vec![VERSION, u8::from(*read_only), u8::from(*present)];
                bytes.extend(size_bytes(size));
                (b'H', bytes)
            }
            Self::Input(bytes) => (b'I', bytes.clone()),
            Self::Resize(size) => (b'R', size_bytes(size)),
            Self::Presence(present) => (b'P', vec![u8::from(*present)]),
            Self::Output(bytes) => (b'O', bytes.clone()),
            Self::Ended => (b'E', Vec::new()),
        }
    }

    fn parse(kind: u8, bytes: Vec<u8>) -> Option<Self> {
        let size = |bytes: &[u8]| match *bytes {
            [a, b, c, d] => Some(Size::sane(
                u16::from_be_bytes([a, b]),
                u16::from_be_bytes([c, d]),
            )),
            _ => None,
        };
        Some(match kind {
            b'H' => match bytes.as_slice() {
                [VERSION, read_only, present, rest @ ..] => Self::Hello {
                    read_only: *read_only != 0,
                    present: *present != 0,
                    size: size(rest)?,
                },
                _ => return None,
            },
            b'I' => Self::Input(bytes),
            b'R' => Self::Resize(size(&bytes)?),
            b'P' => Self::Presence(bytes.first().is_some_and(|byte| *byte != 0)),
            b'O' => Self::Output(bytes),
            b'E' => Self::Ended,
            _ => return None,
        })
    }
}

/// Sends a frame.
pub(super) async fn send(to: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> std::io::Result<()> {
    let (kind, payload) = frame.parts();
    let length = u32::try_from(payload.len()).map_err(std::io::Error::other)?;
    let mut bytes = Vec::with_capacity(payload.len() + 5);
    bytes.push(kind);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&payload);
    to.write_all(&bytes).await
}

/// The next frame; `None` when there is none, or what came is none. Not to be dropped in the middle.
pub(super) async fn receive(from: &mut (impl AsyncRead + Unpin)) -> Option<Frame> {
    let kind = from.read_u8().await.ok()?;
    let length = usize::try_from(from.read_u32().await.ok()?).ok()?;
    if length > FRAME_MAX {
        return None;
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await.ok()?;
    Frame::parse(kind, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_said_is_heard() {
        let size = Size { rows: 20, cols: 90 };
        let all = [
            Frame::Hello {
                read_only: true,
                present: false,
                size,
            },
            Frame::Input(b"x\x11".to_vec()),
            Frame::Resize(size),
            Frame::Presence(true),
            Frame::Output(Vec::new()),
            Frame::Ended,
        ];
        let mut bytes = Vec::new();
        for frame in &all {
            send(&mut bytes, frame).await.unwrap();
        }
        let mut from = bytes.as_slice();
        for frame in &all {
            assert_eq!(receive(&mut from).await.as_ref(), Some(frame));
        }
        assert_eq!(receive(&mut from).await, None);
    }

    #[tokio::test]
    async fn what_is_no_frame_ends_the_line() {
        for bytes in [
            &b"\xff\xff\xff\xff\xff\xff"[..],
            b"H\0\0\0\x01\x09",
            b"I\xff\xff\xff\xff",
            b"Z\0\0\0\0",
            b"I\0\0\0\x09ab",
        ] {
            let mut from = bytes;
            assert_eq!(receive(&mut from).await, None, "{bytes:?}");
        }
    }
}
