//! The type checker: resolves names, overloads and fields, and complains in the words of the original.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

use crate::ast::{Expr, Field, Fold, Id, Kind, Literal};
use crate::functions::{FUNCTIONS, Overload};
use crate::parser::Parsed;
use crate::source::Issue;
use crate::time;
use crate::types::{Mapping, Type, most_general};

/// Fields of object types by type name.
pub(crate) type Structs = BTreeMap<Arc<str>, BTreeMap<String, Type>>;

/// A checked expression.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) expr: Expr,
    /// Type by node number.
    pub(crate) types: Vec<Type>,
    /// Overloads a call may resolve to, by node number.
    pub(crate) overloads: Vec<Vec<&'static str>>,
    /// Type of the whole.
    pub(crate) output: Type,
    /// Variables that are read.
    pub(crate) reads: Vec<String>,
    /// Constant patterns of calls, by node number: they are compiled once and matched often.
    pub(crate) patterns: BTreeMap<Id, Regex>,
}

/// What an expression may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) variables: &'a [(&'a str, Type)],
    pub(crate) structs: &'a Structs,
    /// `Object{…}`, `JSONPatch{…}` and their functions.
    pub(crate) patches: bool,
}

/// Checks an expression in which the given variables are declared.
pub(crate) fn check(parsed: Parsed, scope: Scope<'_>) -> Result<Checked, Vec<Issue>> {
    let Parsed { mut expr, positions } = parsed;
    let count = positions.len();
    let mut checker = Checker {
        structs: scope.structs,
        patches: scope.patches,
        positions,
        scopes: vec![scope.variables.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect()],
        types: vec![Type::Error; count],
        overloads: vec![Vec::new(); count],
        mapping: Mapping::default(),
        fresh: 0,
        issues: Vec::new(),
        reads: Vec::new(),
        patterns: BTreeMap::new(),
    };
    checker.visit(&mut expr);
    for ty in &mut checker.types {
        *ty = checker.mapping.substitute(ty, true);
    }
    if checker.issues.is_empty() {
        checker.validate(&expr, false);
    }
    if !checker.issues.is_empty() {
        checker.issues.sort_by_key(|issue| issue.offset);
        checker.issues.dedup();
        return Err(checker.issues);
    }
    let output = checker.types[expr.id].clone();
    let Checker { types, overloads, reads, patterns, .. } = checker;
    Ok(Checked { expr, types, overloads, output, reads, patterns })
}

struct Checker<'a> {
    structs: &'a Structs,
    patches: bool,
    positions: Vec<usize>,
    scopes: Vec<BTreeMap<String, Type>>,
    types: Vec<Type>,
    overloads: Vec<Vec<&'static str>>,
    mapping: Mapping,
    fresh: usize,
    issues: Vec<Issue>,
    reads: Vec<String>,
    patterns: BTreeMap<Id, Regex>,
}

/// Names of types that may be written as values.
pub(crate) fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" | "int" | "uint" | "double" | "string" | "bytes" | "dyn" => Type::read(name),
        "null_type" => Type::Null,
        "type" => Type::Meta(None),
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "optional_type" => Type::optional(Type::Dyn),
        "kubernetes.Quantity"
        | "kubernetes.URL"
        | "kubernetes.Semver"
        | "kubernetes.NamedFormat"
        | "kubernetes.authorization.Authorizer"
        | "kubernetes.authorization.PathCheck"
        | "kubernetes.authorization.GroupCheck"
        | "kubernetes.authorization.ResourceCheck"
        | "kubernetes.authorization.Decision" => Type::Struct(name.into()),
        "net.IP" | "net.CIDR" => Type::Opaque(name.into(), Vec::new()),
        _ => return None,
    })
}

/// The function that only patches have.
const ESCAPE_KEY: &str = "jsonpatch.escapeKey";

/// Types of which patches are made: any field path below `Object`, and `JSONPatch`.
pub(crate) fn is_patch_type(name: &str) -> bool {
    name == "JSONPatch" || name == "Object" || name.starts_with("Object.")
}

fn patch_field(ty: &str, field: &str) -> Type {
    match (ty, field) {
        ("JSONPatch", "op" | "path" | "from") => Type::String,
        ("JSONPatch", "value") => Type::Dyn,
        // the original has no type for what is no field, and so only dynamic values fit
        ("JSONPatch", _) => Type::Struct("".into()),
        _ => Type::Dyn,
    }
}

impl Checker<'_> {
    fn complain(&mut self, id: Id, message: String) {
        self.issues.push(Issue { offset: self.positions[id], message });
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.complain(id, format!("undeclared reference to '{name}' (in container '')"));
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.complain(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn variable(&mut self) -> Type {
        self.fresh += 1;
        Type::Param(format!("_var{}", self.fresh - 1).into())
    }

    fn lookup(&mut self, name: &str) -> Option<Type> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(ty) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            self.reads.push(name.to_owned());
            return Some(ty.clone());
        }
        let patch_type = || (self.patches && is_patch_type(name)).then(|| Type::Struct(name.into()));
        type_named(name).or_else(patch_type).map(|ty| Type::Meta(Some(Arc::new(ty))))
    }

    fn overloads_of(&self, name: &str) -> Option<(&'static str, &'static [Overload])> {
        let (name, overloads) = FUNCTIONS.get_key_value(name)?;
        (self.patches || *name != ESCAPE_KEY).then_some((*name, overloads.as_slice()))
    }

    fn visit(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let ty = self.infer(expr);
        self.types[id] = ty.clone();
        ty
    }

    fn infer(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        if let Kind::Select { test: false, .. } = &expr.kind
            && let Some(name) = expr.qualified_name()
            && let Some(ty) = self.lookup(&name)
        {
            expr.kind = Kind::Ident(name);
            return ty;
        }
        match &mut expr.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Ident(name) => {
                let name = name.clone();
                self.lookup(&name).unwrap_or_else(|| {
                    self.undeclared(id, &name);
                    Type::Error
                })
            }
            Kind::Select { operand, field, test } => {
                let (field, test) = (field.clone(), *test);
                let found = self.select(id, operand, &field, false);
                if test { Type::Bool } else { self.mapping.substitute(&found, false) }
            }
            Kind::Call { .. } => self.call(expr),
            Kind::List { items, optional } => {
                let mut joined = None;
                for (index, item) in items.iter_mut().enumerate() {
                    let ty = self.visit(item);
                    let ty = self.element(item.id, ty, optional.contains(&index));
                    joined = Some(self.join(joined, ty));
                }
                Type::list(joined.unwrap_or_else(|| self.variable()))
            }
            Kind::Map { entries } => {
                let (mut keys, mut values) = (None, None);
                for (key, value, optional) in entries {
                    let ty = self.visit(key);
                    keys = Some(self.join(keys, ty));
                    let ty = self.visit(value);
                    let ty = self.element(value.id, ty, *optional);
                    values = Some(self.join(values, ty));
                }
                let key = keys.unwrap_or_else(|| self.variable());
                Type::map(key, values.unwrap_or_else(|| self.variable()))
            }
            Kind::Struct { name, fields } => {
                let name = name.clone();
                self.structure(id, &name, fields)
            }
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    /// `Name{field: value}`: only the types that patches are made of can be constructed.
    fn structure(&mut self, id: Id, name: &str, fields: &mut [Field]) -> Type {
        let ty = match self.lookup(name) {
            None => {
                self.undeclared(id, name);
                return Type::Error;
            }
            Some(Type::Meta(Some(of))) => match &*of {
                Type::Struct(name) if self.patches && is_patch_type(name) => (*of).clone(),
                Type::Struct(name) => {
                    self.undeclared(id, name);
                    return Type::Error;
                }
                _ => {
                    self.complain(id, format!("'{of}' is not a message type"));
                    Type::Error
                }
            },
            Some(ty) => {
                self.complain(id, format!("'{ty}' is not a type"));
                Type::Error
            }
        };
        for field in fields {
            let wanted = match &ty {
                Type::Struct(name) => patch_field(name, &field.name),
                _ => {
                    self.complain(field.id, format!("unexpected failed resolution of '{name}'"));
                    Type::Error
                }
            };
            let given = self.visit(&mut field.value);
            let given = self.element(field.value.id, given, field.optional);
            if !self.mapping.assign(&[&wanted], &[&given]) {
                let name = &field.name;
                let given = self.mapping.substitute(&given, true);
                let message =
                    format!("expected type of field '{name}' is '{wanted}' but provided type is '{given}'");
                self.complain(field.id, message);
            }
        }
        ty
    }

    fn element(&mut self, id: Id, ty: Type, optional: bool) -> Type {
        if !optional {
            return ty;
        }
        match ty.unwrap_optional() {
            Some(inner) => inner.clone(),
            None => {
                if !ty.is_dyn_or_error() {
                    self.mismatch(id, &Type::optional(ty.clone()), &ty);
                }
                ty
            }
        }
    }

    fn join(&mut self, before: Option<Type>, ty: Type) -> Type {
        match before {
            None => ty,
            Some(before) if self.mapping.assign(&[&before], &[&ty]) => most_general(&before, &ty).clone(),
            Some(_) => Type::Dyn,
        }
    }

    fn select(&mut self, id: Id, operand: &mut Expr, field: &str, optional: bool) -> Type {
        let operand = self.visit(operand);
        let operand = self.mapping.substitute(&operand, false);
        let target = operand.unwrap_optional().unwrap_or(&operand);
        let found = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Struct(name) if self.patches && is_patch_type(name) => patch_field(name, field),
            Type::Struct(name) => match self.structs.get(name) {
                None => {
                    self.complain(id, format!("unexpected failed resolution of '{name}'"));
                    Type::Error
                }
                Some(fields) => fields.get(field).cloned().unwrap_or_else(|| {
                    self.complain(id, format!("undefined field '{field}'"));
                    Type::Error
                }),
            },
            Type::Param(_) => {
                self.mapping.assign(&[&Type::Dyn], &[target]);
                Type::Dyn
            }
            _ => {
                if !target.is_dyn_or_error() {
                    self.complain(id, format!("type '{target}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if optional || operand.unwrap_optional().is_some() { Type::optional(found) } else { found }
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let Kind::Call { function, target, args } = &mut expr.kind else { return Type::Error };
        if function == "_?._" {
            let field = match args.get(1).map(|a| &a.kind) {
                Some(Kind::Literal(Literal::String(field))) => field.clone(),
                _ => String::new(),
            };
            self.overloads[id] = vec!["select_optional_field"];
            let found = self.select(id, &mut args[0], &field, true);
            return self.mapping.substitute(&found, false);
        }
        let mut types: Vec<Type> = args.iter_mut().map(|arg| self.visit(arg)).collect();
        let ids: Vec<Id> = args.iter().map(|arg| arg.id).collect();
        if let Some(prefix) = target.as_ref().and_then(|t| t.qualified_name()) {
            let name = format!("{prefix}.{function}");
            if let Some((name, overloads)) = self.overloads_of(&name) {
                *function = name.to_owned();
                *target = None;
                return self.resolve(id, name, overloads, false, &types, &ids);
            }
        }
        let member = target.is_some();
        if let Some(target) = target {
            types.insert(0, self.visit(target));
        }
        let name = function.strip_prefix('.').filter(|_| !member).unwrap_or(function).to_owned();
        match self.overloads_of(&name) {
            Some((name, overloads)) => {
                *function = name.to_owned();
                self.resolve(id, name, overloads, member, &types, &ids)
            }
            None => {
                self.undeclared(id, &name);
                Type::Error
            }
        }
    }

    fn resolve(
        &mut self,
        id: Id,
        name: &str,
        overloads: &'static [Overload],
        member: bool,
        types: &[Type],
        args: &[Id],
    ) -> Type {
        if matches!(name, "_&&_" | "_||_") {
            let mut fine = true;
            for (ty, arg) in types.iter().zip(args) {
                if !self.mapping.assign(&[ty], &[&Type::Bool]) {
                    self.mismatch(*arg, &Type::Bool, ty);
                    fine = false;
                }
            }
            self.overloads[id] = overloads.iter().map(|o| o.id).collect();
            return if fine { Type::Bool } else { Type::Error };
        }
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|o| o.member == member) {
            let mut fresh = Mapping::default();
            for variable in &overload.variables {
                let free = self.variable();
                fresh.add(variable, free);
            }
            let wanted: Vec<Type> = overload.args.iter().map(|arg| fresh.substitute(arg, false)).collect();
            if self.mapping.assign(&types.iter().collect::<Vec<_>>(), &wanted.iter().collect::<Vec<_>>()) {
                self.overloads[id].push(overload.id);
                let ty = self.mapping.substitute(&fresh.substitute(&overload.result, false), false);
                result = Some(match result {
                    None => ty,
                    Some(before) if before == Type::Dyn || before == ty => before,
                    Some(_) => Type::Dyn,
                });
            }
        }
        result.unwrap_or_else(|| {
            let shown: Vec<String> =
                types.iter().map(|ty| self.mapping.substitute(ty, true).to_string()).collect();
            let signature = match shown.split_first() {
                Some((target, args)) if member => format!("{target}.({})", args.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            self.complain(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
            Type::Error
        })
    }

    fn fold(&mut self, fold: &mut Fold) -> Type {
        let range = self.visit(&mut fold.range);
        let accu = self.visit(&mut fold.init);
        let range = self.mapping.substitute(&range, false);
        let (first, second) = match &range {
            Type::List(item) if fold.iter2.is_some() => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.mapping.assign(&[&Type::Dyn], &[&range]);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.complain(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        self.scopes.push(BTreeMap::from([(fold.accu.clone(), accu.clone())]));
        let mut inner = BTreeMap::from([(fold.iter.clone(), first)]);
        if let Some(name) = &fold.iter2 {
            inner.insert(name.clone(), second);
        }
        self.scopes.push(inner);
        let condition = self.visit(&mut fold.condition);
        self.assert(fold.condition.id, &Type::Bool, &condition);
        let step = self.visit(&mut fold.step);
        self.assert(fold.step.id, &accu, &step);
        self.scopes.pop();
        let result = self.visit(&mut fold.result);
        self.scopes.pop();
        self.mapping.substitute(&result, false)
    }

    fn assert(&mut self, id: Id, expected: &Type, found: &Type) {
        if !self.mapping.assign(&[expected], &[found]) {
            self.mismatch(id, expected, found);
        }
    }

    /// What is looked at only when all types fit: literals of durations, times and patterns, and mixed literals.
    fn validate(&mut self, expr: &Expr, exempt: bool) {
        match &expr.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => self.validate(operand, exempt),
            Kind::Call { function, target, args } => {
                if let Some(Expr { id, kind: Kind::Literal(Literal::String(text)), .. }) = args.first() {
                    let valid = match function.as_str() {
                        "duration" => time::parse_duration(text).is_some(),
                        "timestamp" => time::parse_timestamp(text).is_some(),
                        "matches" | "find" | "findAll" => {
                            let compiled = orlop_schema::go_regex::compile(text);
                            // What `find` cannot read is found when the program is made, in other words.
                            let valid = compiled.is_ok() || function != "matches";
                            self.patterns
                                .extend(compiled.ok().filter(|_| target.is_some()).map(|p| (expr.id, p)));
                            valid
                        }
                        _ => true,
                    };
                    if !valid {
                        self.complain(*id, format!("invalid {function} argument"));
                    }
                }
                let exempt = exempt || function == "format";
                target.iter().for_each(|t| self.validate(t, exempt));
                args.iter().for_each(|a| self.validate(a, exempt));
            }
            Kind::List { items, optional } => {
                if !exempt {
                    self.homogeneous(
                        items.iter().enumerate().map(|(i, item)| (item.id, optional.contains(&i))).collect(),
                    );
                }
                items.iter().for_each(|i| self.validate(i, exempt));
            }
            Kind::Map { entries } => {
                if !exempt {
                    self.homogeneous(entries.iter().map(|(key, ..)| (key.id, false)).collect());
                    self.homogeneous(
                        entries.iter().map(|(_, value, optional)| (value.id, *optional)).collect(),
                    );
                }
                for (key, value, _) in entries {
                    self.validate(key, exempt);
                    self.validate(value, exempt);
                }
            }
            Kind::Struct { fields, .. } => fields.iter().for_each(|f| self.validate(&f.value, exempt)),
            Kind::Fold(fold) => {
                for part in [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result] {
                    self.validate(part, exempt);
                }
            }
        }
    }

    fn homogeneous(&mut self, elements: Vec<(Id, bool)>) {
        let mut first: Option<Type> = None;
        for (id, optional) in elements {
            let ty = self.types[id].clone();
            let ty = ty.unwrap_optional().filter(|_| optional).cloned().unwrap_or(ty);
            match &first {
                None => first = Some(ty),
                Some(first) if *first != ty => {
                    let first = first.clone();
                    self.mismatch(id, &first, &ty);
                    return;
                }
                Some(_) => {}
            }
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
