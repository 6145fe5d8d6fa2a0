//! Where a patch is in the types, and how each field wants to be patched.

use super::{Result, StrategicError};
use crate::go;
use crate::schema::{Atom, Field, ObjectType, Patch, Schema, TypeRef};

/// A type during the walk.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'s> {
    schema: &'s Schema,
    ty: &'s TypeRef,
}

impl<'s> Lookup<'s> {
    pub(super) fn new(ty: &'s ObjectType) -> Self {
        Self { schema: ty.schema(), ty: ty.root() }
    }

    /// The type of a field and how it is patched.
    pub(super) fn field(self, key: &str) -> Result<(Self, &'s Patch)> {
        let field = self.find(key)?;
        Ok((Self { schema: self.schema, ty: &field.ty }, &field.patch))
    }

    /// The type of the items of a list field and how the field is patched.
    pub(super) fn list(self, key: &str) -> Result<(Self, &'s Patch)> {
        let (list, patch) = self.field(key)?;
        let Some(list) = list.atom().and_then(|atom| atom.list) else {
            return Err(StrategicError::Internal("expected slice or array type, but got: struct".into()));
        };
        Ok((Self { schema: self.schema, ty: &list.list.element }, patch))
    }

    /// What Go calls the kind of this type.
    pub(super) fn kind(self) -> &'static str {
        match self.atom() {
            Some(Atom { map: Some(map), .. }) if !map.map.fields.is_empty() => "struct",
            Some(Atom { map: Some(_), scalar: None, .. }) => "map",
            Some(Atom { scalar: Some(_), .. }) => "string",
            _ => "struct",
        }
    }

    fn find(self, key: &str) -> Result<&'s Field> {
        let fields = self.atom().and_then(|atom| atom.map).map(|map| &map.map.fields);
        if fields.is_none_or(|fields| fields.is_empty())
            && !matches!(self.ty, TypeRef::Named(_) | TypeRef::NamedAs { .. })
        {
            return Err(StrategicError::Internal(format!(
                "merging an object in json but data type is not struct, instead is: {}",
                self.kind()
            )));
        }
        fields
            .and_then(|fields| {
                fields.get(key).or_else(|| {
                    fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, field)| field)
                })
            })
            .ok_or_else(|| {
                let name = self.schema.name_of(self.ty).unwrap_or_default();
                let name = name.rsplit('.').next().unwrap_or_default();
                StrategicError::Internal(format!(
                    "unable to find api field in struct {name} for the json field {}",
                    go::quote(key)
                ))
            })
    }

    fn atom(self) -> Option<Atom<'s>> {
        self.schema.resolve(self.ty)
    }
}
