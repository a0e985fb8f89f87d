//! Why a file was not read, written or removed.

use std::io;

use rustix::io::Errno;
use wakeful_wire::Code;

use super::PathFault;

/// Why a file was not read, written or removed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path cannot be one.
    #[error("bad path: {0}")]
    Path(#[from] PathFault),
    /// It lies in the environment server's own directory.
    #[error("the directory of the environment's threads")]
    Reserved,
    /// Nothing is there, or what is there leads outside or is no file.
    #[error("nothing is there")]
    NotFound,
    /// A directory stands there.
    #[error("a directory stands there")]
    IsDirectory,
    /// Something else than a directory stands in the way.
    #[error("no directory")]
    NotDirectory,
    /// The directory is not empty.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The workspace does not allow it.
    #[error("not allowed")]
    Denied,
    /// The disk or a quota is full.
    #[error("no space left")]
    NoSpace,
    /// The sender went away or broke its framing.
    #[error("the transfer broke off")]
    Aborted,
    /// More bytes than may be.
    #[error("more than {limit} bytes")]
    TooLarge {
        /// The most that may be.
        limit: u64,
    },
    /// Something else.
    #[error("it failed")]
    Failed(#[source] io::Error),
}

impl FileError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Path(_) | Self::Aborted => Code::BadRequest,
            Self::Reserved => Code::Invalid,
            Self::NotFound => Code::NotFound,
            Self::IsDirectory | Self::NotDirectory | Self::NotEmpty => Code::Conflict,
            Self::Denied => Code::Forbidden,
            Self::NoSpace => Code::NoSpace,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::Failed(_) => Code::Internal,
        }
    }

    /// A sentence for the outside.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Path(fault) => format!("The path {fault}."),
            Self::Reserved => {
                "The directory `.wakeful` holds the threads of this environment: its files are \
                 neither read nor changed from here."
                    .into()
            }
            Self::NotFound => "There is no such file.".into(),
            Self::IsDirectory => "A directory stands there.".into(),
            Self::NotDirectory => {
                "Something that is not a directory, or a link, stands in the way.".into()
            }
            Self::NotEmpty => "The directory is not empty.".into(),
            Self::Denied => "The workspace does not allow that.".into(),
            Self::NoSpace => "The disk is full. What was there before is still there.".into(),
            Self::Aborted => "The transfer broke off. What was there before is still there.".into(),
            Self::TooLarge { limit } => format!("At most {limit} bytes can be sent at once."),
            Self::Failed(_) => return None,
        })
    }
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        match errno {
            // `XDEV` and `LOOP` is how the kernel says that a link leads outside, or in circles.
            Errno::NOENT | Errno::XDEV | Errno::NXIO | Errno::NAMETOOLONG => Self::NotFound,
            Errno::ISDIR => Self::IsDirectory,
            Errno::NOTDIR | Errno::LOOP => Self::NotDirectory,
            Errno::NOTEMPTY | Errno::EXIST => Self::NotEmpty,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            _ => Self::Failed(errno.into()),
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Failed(error),
        }
    }
}
