//! The `orlop` command.

fn main() {}
