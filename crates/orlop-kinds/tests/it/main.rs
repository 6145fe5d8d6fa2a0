//! Built-in kinds against recorded answers of the real API server, and against odd input.

mod robust;
mod updates;
mod validation;
mod writes;
