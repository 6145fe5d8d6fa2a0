//! Types of expressions, their names in messages, and the unification that overload resolution needs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A type of CEL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Null,
    Duration,
    Timestamp,
    Dyn,
    Error,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    /// An object of the schema or one of the struct-like library types.
    Struct(Arc<str>),
    /// A library type, `optional_type` among them, with parameters.
    Opaque(Arc<str>, Vec<Type>),
    /// The type of types.
    Meta(Option<Arc<Type>>),
    /// A type variable.
    Param(Arc<str>),
}

impl Type {
    pub(crate) fn list(item: Type) -> Self {
        Type::List(Arc::new(item))
    }

    pub(crate) fn map(key: Type, value: Type) -> Self {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(inner: Type) -> Self {
        Type::Opaque("optional_type".into(), vec![inner])
    }

    /// The type within an optional.
    pub(crate) fn unwrap_optional(&self) -> Option<&Type> {
        match self {
            Type::Opaque(name, params) if &**name == "optional_type" => params.first(),
            _ => None,
        }
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// Null may stand where these are expected.
    fn nullable(&self) -> bool {
        matches!(self, Type::Opaque(..) | Type::Struct(_) | Type::Duration | Type::Timestamp | Type::Null)
    }

    /// The name as the server writes it when an expression gives another type than it must.
    pub(crate) fn go_name(&self) -> String {
        match self {
            Type::Null => "null_type".to_owned(),
            Type::Duration => "google.protobuf.Duration".to_owned(),
            Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Type::List(item) => format!("list({})", item.go_name()),
            Type::Map(key, value) => format!("map({}, {})", key.go_name(), value.go_name()),
            Type::Opaque(name, params) if !params.is_empty() => {
                let params: Vec<String> = params.iter().map(Type::go_name).collect();
                format!("{name}({})", params.join(", "))
            }
            Type::Meta(Some(of)) => format!("type({})", of.go_name()),
            _ => self.to_string(),
        }
    }

    fn params(&self) -> Vec<&Type> {
        match self {
            Type::List(item) => vec![item],
            Type::Map(key, value) => vec![key, value],
            Type::Opaque(_, params) => params.iter().collect(),
            Type::Meta(Some(of)) => vec![of],
            _ => Vec::new(),
        }
    }

    /// A type read from the notation of the function table.
    pub(crate) fn read(text: &str) -> Self {
        let (head, inner) = match text.split_once('<') {
            Some((head, rest)) => (head, rest.strip_suffix('>').unwrap_or(rest)),
            None => (text, ""),
        };
        match head {
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "null" => Type::Null,
            "duration" => Type::Duration,
            "timestamp" => Type::Timestamp,
            "dyn" => Type::Dyn,
            "list" => Type::list(Type::read(inner)),
            "map" => match split_args(inner).as_slice() {
                [key, value] => Type::map(Type::read(key), Type::read(value)),
                _ => Type::Error,
            },
            "optional" => Type::optional(Type::read(inner)),
            "type" => Type::Meta(Some(Arc::new(Type::read(inner)))),
            "quantity" => Type::Struct("kubernetes.Quantity".into()),
            "url" => Type::Struct("kubernetes.URL".into()),
            "semver" => Type::Struct("kubernetes.Semver".into()),
            "format" => Type::Struct("kubernetes.NamedFormat".into()),
            "authorizer" => Type::Struct("kubernetes.authorization.Authorizer".into()),
            "pathcheck" => Type::Struct("kubernetes.authorization.PathCheck".into()),
            "groupcheck" => Type::Struct("kubernetes.authorization.GroupCheck".into()),
            "resourcecheck" => Type::Struct("kubernetes.authorization.ResourceCheck".into()),
            "decision" => Type::Struct("kubernetes.authorization.Decision".into()),
            "ip" => Type::Opaque("net.IP".into(), Vec::new()),
            "cidr" => Type::Opaque("net.CIDR".into(), Vec::new()),
            name => Type::Param(name.into()),
        }
    }
}

/// Splits at the commas outside of angle brackets.
pub(crate) fn split_args(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Uint => f.write_str("uint"),
            Type::Double => f.write_str("double"),
            Type::String => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Null => f.write_str("null"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Dyn => f.write_str("dyn"),
            Type::Error => f.write_str("!error!"),
            Type::List(item) => write!(f, "list({item})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Struct(name) | Type::Param(name) => f.write_str(name),
            Type::Opaque(name, params) if params.is_empty() => f.write_str(name),
            Type::Opaque(name, params) => {
                let params: Vec<String> = params.iter().map(ToString::to_string).collect();
                write!(f, "{name}({})", params.join(", "))
            }
            Type::Meta(None) => f.write_str("type"),
            Type::Meta(Some(of)) => write!(f, "type({of})"),
        }
    }
}

/// What the type variables stand for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mapping(BTreeMap<Arc<str>, Type>);

impl Mapping {
    fn find(&self, ty: &Type) -> Option<&Type> {
        match ty {
            Type::Param(name) => self.0.get(name),
            _ => None,
        }
    }

    pub(crate) fn add(&mut self, name: &Arc<str>, ty: Type) {
        self.0.insert(name.clone(), ty);
    }

    /// Replaces variables by what they stand for; free ones by dyn if `close`.
    pub(crate) fn substitute(&self, ty: &Type, close: bool) -> Type {
        if let Some(found) = self.find(ty) {
            return self.substitute(found, close);
        }
        match ty {
            Type::Param(_) if close => Type::Dyn,
            Type::List(item) => Type::list(self.substitute(item, close)),
            Type::Map(key, value) => Type::map(self.substitute(key, close), self.substitute(value, close)),
            Type::Opaque(name, params) => {
                Type::Opaque(name.clone(), params.iter().map(|p| self.substitute(p, close)).collect())
            }
            Type::Meta(Some(of)) => Type::Meta(Some(Arc::new(self.substitute(of, close)))),
            _ => ty.clone(),
        }
    }

    /// Whether each left type fits its right one; variables are bound only if all fit.
    pub(crate) fn assign(&mut self, left: &[&Type], right: &[&Type]) -> bool {
        let mut copy = self.clone();
        let fits = copy.all_fit(left, right);
        if fits {
            *self = copy;
        }
        fits
    }

    fn all_fit(&mut self, left: &[&Type], right: &[&Type]) -> bool {
        left.len() == right.len() && left.iter().zip(right).all(|(l, r)| self.fits(l, r))
    }

    fn fits(&mut self, left: &Type, right: &Type) -> bool {
        if let Type::Param(name) = right {
            let (valid, bound) = self.binds(left, right, name);
            if valid || bound {
                return valid;
            }
        }
        if let Type::Param(name) = left {
            return self.binds(right, left, name).0;
        }
        if left.is_dyn_or_error() || right.is_dyn_or_error() {
            return true;
        }
        if *left == Type::Null || *right == Type::Null {
            return left.nullable() && right.nullable();
        }
        match (left, right) {
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::Opaque(l, _), Type::Opaque(r, _)) if l != r => false,
            (Type::Opaque(..), Type::Opaque(..))
            | (Type::List(_), Type::List(_))
            | (Type::Map(..), Type::Map(..)) => self.all_fit(&left.params(), &right.params()),
            _ => left == right,
        }
    }

    /// Whether variable `name` may stand for `ty`, and whether it already stood for something.
    fn binds(&mut self, ty: &Type, variable: &Type, name: &Arc<str>) -> (bool, bool) {
        if ty == variable {
            return (true, true);
        }
        if let Some(bound) = self.find(variable).cloned() {
            if *ty == bound {
                return (true, true);
            }
            if !self.fits(ty, &bound) {
                return (false, true);
            }
            let general = most_general(ty, &bound).clone();
            if self.absent(variable, &general) {
                self.add(name, general);
            }
            return (true, true);
        }
        let free = self.absent(variable, ty);
        if free {
            self.add(name, ty.clone());
        }
        (free, false)
    }

    /// The variable does not occur in the type.
    fn absent(&self, variable: &Type, within: &Type) -> bool {
        if variable == within {
            return false;
        }
        match within {
            Type::Param(_) => self.find(within).is_none_or(|bound| self.absent(variable, bound)),
            _ => within.params().iter().all(|p| self.absent(variable, p)),
        }
    }
}

/// The more general of two types that fit each other.
pub(crate) fn most_general<'a>(left: &'a Type, right: &'a Type) -> &'a Type {
    if less_specific(left, right) { left } else { right }
}

fn less_specific(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Dyn | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::Meta(_), Type::Meta(_)) => true,
        (Type::Opaque(l, _), Type::Opaque(r, _)) if l != r => false,
        (Type::Opaque(..), Type::Opaque(..))
        | (Type::List(_), Type::List(_))
        | (Type::Map(..), Type::Map(..)) => {
            let (l, r) = (left.params(), right.params());
            l.len() == r.len() && l.iter().zip(r).all(|(l, r)| less_specific(l, r))
        }
        _ => left == right,
    }
}
