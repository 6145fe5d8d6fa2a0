//! Label and field selectors.

pub(crate) mod fields;
pub(crate) mod labels;

pub(crate) use fields::FieldSelector;
pub(crate) use labels::LabelSelector;
