//! Data to stdout, talk to stderr.

use std::fmt::Display;
use std::io::Write as _;

/// Prints a line of data.
pub(crate) fn data(line: impl Display) {
    // A reader that has gone away is no failure of ours.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a line of talk.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
