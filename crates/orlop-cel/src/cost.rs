//! The most an expression can cost, from the sizes its schema allows.
//!
//! The numbers are part of the API: they decide which definitions are accepted, so that even the odd corners of
//! the original, such as the size of a loop variable over a literal, are kept.

use crate::ast::{Expr, Fold, Id, Kind, Literal};
use crate::check::Checked;
use crate::decl::{Decl, Shape};
use crate::types::Type;

/// Bounds of a cost or of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

const UNKNOWN: Estimate = Estimate { min: 0, max: u64::MAX };
const ONE: Estimate = fixed(1);
const ZERO: Estimate = fixed(0);
const NONE: Estimate = Estimate { min: u64::MAX, max: 0 };
const TRAVERSAL: f64 = 0.1;
const REGEX: f64 = 0.25;

const fn fixed(value: u64) -> Estimate {
    Estimate { min: value, max: value }
}

impl Estimate {
    fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    fn factor(self, factor: f64) -> Self {
        // casts of floats saturate, as the original does by hand
        let scale = |n: u64| (n as f64 * factor).ceil() as u64;
        Self { min: scale(self.min), max: scale(self.max) }
    }

    fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Sizes of what a literal or loop puts into a container.
#[derive(Debug, Clone, Copy)]
struct Entry {
    list: bool,
    key: Estimate,
    value: Estimate,
}

impl Entry {
    fn union(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        let (left, right) = (left?, right?);
        Some(Self { list: left.list, key: left.key.union(right.key), value: left.value.union(right.value) })
    }
}

struct Local {
    name: String,
    path: Vec<String>,
    size: Option<Estimate>,
    entry: Option<Entry>,
}

struct Coster<'a> {
    checked: &'a Checked,
    root: &'a Decl,
    paths: Vec<Vec<String>>,
    sizes: Vec<Option<Estimate>>,
    entries: Vec<Option<Entry>>,
    locals: Vec<Local>,
}

/// Estimates an expression on data of this declaration.
pub(crate) fn estimate(checked: &Checked, decl: &Decl) -> Estimate {
    let count = checked.types.len();
    let mut coster = Coster {
        checked,
        root: decl,
        paths: vec![Vec::new(); count],
        sizes: vec![None; count],
        entries: vec![None; count],
        locals: Vec::new(),
    };
    coster.cost(&checked.expr)
}

impl Coster<'_> {
    fn ty(&self, expr: &Expr) -> &Type {
        &self.checked.types[expr.id]
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Vec<String> {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths[expr.id].clone()
    }

    /// The size the schema allows at a path; the first step names a variable.
    fn schema_size(&self, path: &[String]) -> Option<Estimate> {
        let (_, steps) = path.split_first()?;
        let mut here = self.root;
        for (index, step) in steps.iter().enumerate() {
            here = match (step.as_str(), &here.shape) {
                ("@items" | "@values", Shape::List(inner) | Shape::Map(inner)) => inner,
                ("@keys", Shape::Map(_)) if index + 1 == steps.len() => return Some(ZERO),
                (name, Shape::Object(fields)) => fields.get(name)?,
                _ => return None,
            };
        }
        Some(Estimate { min: 0, max: here.elements_max.max(0) as u64 })
    }

    fn size(&self, expr: &Expr) -> Option<Estimate> {
        if let Some(size) = self.sizes[expr.id] {
            return Some(size);
        }
        let literal = match &expr.kind {
            Kind::Literal(Literal::String(text)) => Some(text.chars().count()),
            Kind::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            Kind::Literal(_) => Some(1),
            Kind::List { items, .. } => Some(items.len()),
            Kind::Map { entries } => Some(entries.len()),
            _ => None,
        };
        if let Some(size) = literal {
            return Some(fixed(size as u64));
        }
        if let Some(size) = self.schema_size(&self.path(expr)) {
            return Some(size);
        }
        if scalar(self.ty(expr)) {
            return Some(ONE);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size_or_unknown(&self, expr: &Expr) -> Estimate {
        self.size(expr).unwrap_or(UNKNOWN)
    }

    fn entry(&self, expr: &Expr) -> Option<Entry> {
        if let Some(entry) = self.entries[expr.id] {
            return Some(entry);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        }
    }

    fn set_size(&mut self, id: Id, size: Option<Estimate>) {
        if size.is_some() {
            self.sizes[id] = size;
        }
    }

    fn set_entry(&mut self, id: Id, entry: Option<Entry>) {
        if entry.is_some() {
            self.entries[id] = entry;
        }
    }

    fn cost(&mut self, expr: &Expr) -> Estimate {
        match &expr.kind {
            Kind::Literal(_) => ZERO,
            Kind::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths[expr.id] = path;
                ONE
            }
            Kind::Select { operand, test: true, .. } => self.cost(operand),
            Kind::Select { operand, field, .. } => {
                let mut sum = self.cost(operand);
                if matches!(self.ty(operand), Type::Map(..) | Type::Struct(_) | Type::Param(_)) {
                    sum = sum.plus(ONE);
                }
                let mut path = self.path(operand);
                path.push(field.clone());
                self.paths[expr.id] = path;
                sum
            }
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Kind::List { items, .. } => {
                let mut sum = ZERO;
                let mut value = if items.is_empty() { ZERO } else { NONE };
                for item in items {
                    sum = sum.plus(self.cost(item));
                    value = value.union(self.size_or_unknown(item));
                }
                self.entries[expr.id] = Some(Entry { list: true, key: ONE, value });
                sum.plus(fixed(10))
            }
            Kind::Map { entries } => {
                let mut sum = ZERO;
                let (mut key, mut value) = if entries.is_empty() { (ZERO, ZERO) } else { (NONE, NONE) };
                for (k, v, _) in entries {
                    sum = sum.plus(self.cost(k)).plus(self.cost(v));
                    key = key.union(self.size_or_unknown(k));
                    value = value.union(self.size_or_unknown(v));
                }
                self.entries[expr.id] = Some(Entry { list: false, key, value });
                sum.plus(fixed(30))
            }
            Kind::Struct { fields, .. } => {
                fields.iter().map(|f| self.cost(&f.value)).fold(fixed(40), Estimate::plus)
            }
            Kind::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn push(&mut self, name: &str, path: Vec<String>, size: Option<Estimate>, entry: Option<Entry>) {
        self.locals.push(Local { name: name.to_owned(), path, size, entry });
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> Estimate {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        let depth = self.locals.len();
        let (path, size, entry) = (self.path(&fold.init), self.size(&fold.init), self.entry(&fold.init));
        self.push(&fold.accu, path, size, entry);
        if matches!(fold.condition.kind, Kind::Literal(Literal::Bool(false))) {
            sum = sum.plus(self.cost(&fold.result));
            self.locals.truncate(depth);
            self.set_size(expr.id, self.size(&fold.result));
            self.set_entry(expr.id, self.entry(&fold.result));
            return sum;
        }
        let entry = self.entry(&fold.range);
        let list = entry.map_or_else(|| matches!(self.ty(&fold.range), Type::List(_)), |e| e.list);
        let path = self.path(&fold.range);
        let below = |step: &str| path.iter().cloned().chain([step.to_owned()]).collect::<Vec<_>>();
        let (key, value) = (entry.map(|e| e.key), entry.map(|e| e.value));
        match &fold.iter2 {
            Some(second) => {
                self.push(&fold.iter, below(if list { "@indices" } else { "@keys" }), key, None);
                self.push(second, below(if list { "@items" } else { "@values" }), value, None);
            }
            None if list => self.push(&fold.iter, below("@items"), value, None),
            None => self.push(&fold.iter, below("@keys"), key, None),
        }
        let each = self.cost(&fold.condition).plus(self.cost(&fold.step));
        self.locals.truncate(depth + 1);
        sum = sum.plus(self.cost(&fold.result));
        self.locals.truncate(depth);
        let count = self.size_or_unknown(&fold.range);
        sum = sum.plus(count.times(each));
        match &fold.init.kind {
            Kind::Literal(_) => self.set_size(expr.id, self.size(&fold.init)),
            Kind::List { .. } | Kind::Map { .. } => {
                self.set_size(expr.id, Some(count));
                self.set_entry(expr.id, self.entry(&fold.step));
            }
            _ => {}
        }
        sum
    }

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Estimate {
        if let ("dyn", [arg]) = (function, args) {
            let cost = self.cost(arg).plus(ONE);
            self.set_size(expr.id, self.size(arg));
            self.set_entry(expr.id, self.entry(arg));
            return cost;
        }
        let costs: Vec<Estimate> = args.iter().map(|arg| self.cost(arg)).collect();
        let overloads = self.checked.overloads[expr.id].clone();
        if overloads.is_empty() {
            return ZERO;
        }
        let sum = target.map_or(ZERO, |target| self.cost(target));
        let mut total = NONE;
        let mut size: Option<Estimate> = None;
        for overload in overloads {
            let (cost, result) = self.overload(expr, function, overload, target, args, &costs);
            total = total.union(cost);
            size = match (size, result) {
                (Some(before), Some(result)) => Some(before.union(result)),
                (before, result) => before.or(result),
            };
            if let ("index_list" | "index_map", [container, ..]) = (overload, args) {
                size = self.entry(container).map(|entry| entry.value);
                let mut path = self.path(container);
                path.push(if overload == "index_list" { "@items" } else { "@values" }.to_owned());
                self.paths[expr.id] = path;
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        self.set_size(expr.id, size);
        sum.plus(total)
    }

    /// Cost of one overload with its arguments, and the size of its result if it is known.
    fn overload(
        &mut self,
        expr: &Expr,
        function: &str,
        overload: &str,
        target: Option<&Expr>,
        args: &[Expr],
        costs: &[Estimate],
    ) -> (Estimate, Option<Estimate>) {
        let arguments = costs.iter().copied().fold(ZERO, Estimate::plus);
        if let Some((cost, size)) = self
            .extension(function, overload, target, args)
            .or_else(|| self.kubernetes(function, overload, target, args))
        {
            return (cost.plus(arguments), size);
        }
        let plain = |cost: Estimate| (cost.plus(arguments), None);
        let size = |at: usize| args.get(at).map_or(UNKNOWN, |arg| self.size_or_unknown(arg));
        let of_target = || target.map_or(UNKNOWN, |target| self.size_or_unknown(target));
        match overload {
            "string_format" => plain(of_target().factor(TRAVERSAL)),
            "string_to_bytes" => {
                let size = size(0);
                (
                    size.factor(TRAVERSAL).plus(arguments),
                    Some(Estimate { min: size.min, max: size.max.wrapping_mul(4) }),
                )
            }
            "bytes_to_string" => {
                let size = size(0);
                (size.factor(TRAVERSAL).plus(arguments), Some(Estimate { min: size.min / 4, max: size.max }))
            }
            "strings_quote" => {
                let size = size(0);
                let quoted =
                    Estimate { min: size.min.wrapping_add(2), max: size.max.wrapping_mul(2).wrapping_add(2) };
                (size.factor(TRAVERSAL).plus(arguments), Some(quoted))
            }
            "starts_with_string" | "ends_with_string" => plain(size(0).factor(TRAVERSAL)),
            "in_list" => plain(size(1).factor(1.0)),
            "matches_string" => plain(of_target().plus(ONE).factor(TRAVERSAL).times(size(0).factor(REGEX))),
            "contains_string" => plain(of_target().factor(TRAVERSAL).times(size(0).factor(TRAVERSAL))),
            "logical_or" | "logical_and" => {
                (Estimate { min: costs.first().map_or(0, |c| c.min), max: arguments.max }, None)
            }
            "conditional" => {
                let [condition, yes, no] = costs else { return plain(ONE) };
                let result = size(1).union(size(2));
                let entry = Entry::union(self.entry(&args[1]), self.entry(&args[2]));
                self.set_entry(expr.id, entry);
                (condition.plus(yes.union(*no)), Some(result))
            }
            "add_string" | "add_bytes" | "add_list" => {
                let result = size(0).plus(size(1));
                let entry = Entry::union(self.entry(&args[0]), self.entry(&args[1]));
                self.set_entry(expr.id, entry);
                let cost = if overload == "add_list" { ONE } else { result.factor(TRAVERSAL) };
                (cost.plus(arguments), Some(result))
            }
            "equals"
            | "not_equals"
            | "less_string"
            | "less_bytes"
            | "less_equals_string"
            | "less_equals_bytes"
            | "greater_string"
            | "greater_bytes"
            | "greater_equals_string"
            | "greater_equals_bytes" => {
                let max = size(0).max.min(size(1).max);
                plain(Estimate { min: u64::from(max > 0), max }.factor(TRAVERSAL))
            }
            _ => plain(ONE),
        }
    }

    /// The list and set extensions.
    fn extension(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Option<(Estimate, Option<Estimate>)> {
        let number = |at: usize, default: u64| match args.get(at).map(|arg| &arg.kind) {
            Some(Kind::Literal(Literal::Int(n))) => (*n).max(0) as u64,
            _ => default,
        };
        let allocating =
            |factor: f64, size: Estimate| Some((size.factor(factor).plus(fixed(11)), Some(size)));
        let of_target = || target.map(|target| self.size_or_unknown(target));
        let sorted = |size: Estimate| {
            let text = overload.starts_with("list_string") || overload.starts_with("list_bytes");
            allocating(if text { 2.1 } else { 2.0 }, size.times(size))
        };
        match function {
            "slice" => allocating(1.0, fixed(number(1, of_target()?.max).wrapping_sub(number(0, 0)))),
            "lists.range" => allocating(1.0, fixed(number(0, u64::MAX))),
            "reverse" => allocating(1.0, of_target()?),
            "flatten" => {
                allocating(if args.is_empty() { 1.0 } else { number(0, u64::MAX) as f64 }, of_target()?)
            }
            "distinct" => of_target().and_then(|size| allocating(2.0, size.times(size))),
            "sort" => sorted(of_target()?),
            "@sortByAssociatedKeys" => sorted(self.size_or_unknown(args.first()?)),
            "sets.contains" | "sets.intersects" | "sets.equivalent" => {
                let (left, right) = (self.size_or_unknown(args.first()?), self.size_or_unknown(args.get(1)?));
                let factor = if function == "sets.equivalent" { 2.0 } else { 1.0 };
                Some((left.times(right).factor(factor).plus(ONE), None))
            }
            _ => None,
        }
    }

    /// Size and type of a list's elements, by its path.
    fn element(&self, list: &Expr) -> Option<(Type, Estimate)> {
        let item = match self.ty(list) {
            Type::List(item) => (**item).clone(),
            Type::Map(key, _) => (**key).clone(),
            Type::Opaque(_, params) => params.first()?.clone(),
            _ => return None,
        };
        let mut path = self.path(list);
        let size = if path.is_empty() {
            None
        } else {
            path.push("@items".to_owned());
            self.schema_size(&path)
        };
        Some((item, size.unwrap_or(UNKNOWN)))
    }

    /// The libraries of Kubernetes.
    fn kubernetes(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Option<(Estimate, Option<Estimate>)> {
        let of_target = || target.map(|target| self.size_or_unknown(target));
        let arg = |at: usize| args.get(at).map(|arg| self.size_or_unknown(arg));
        let parsed = || Some((arg(0)?.factor(TRAVERSAL), None));
        match function {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => match self.element(target?) {
                Some((item, size)) => {
                    let text = matches!(item, Type::String | Type::Bytes);
                    let each = if text { ONE.plus(size.factor(TRAVERSAL)) } else { ONE };
                    Some((of_target()?.times(each), None))
                }
                None => Some((of_target()?.factor(TRAVERSAL), None)),
            },
            "url" => Some((arg(0)?.factor(TRAVERSAL), arg(0))),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                Some((of_target()?.factor(TRAVERSAL), of_target()))
            }
            "replace" => {
                Some((of_target()?.factor(2.0 * TRAVERSAL), Some(replaced(of_target()?, arg(0)?, arg(1)?))))
            }
            "split" => {
                let size = of_target()?;
                let max = match args.get(1).map(|arg| &arg.kind) {
                    Some(Kind::Literal(Literal::Int(n))) => *n as u64,
                    _ => size.max,
                };
                Some((size.factor(2.0 * TRAVERSAL), Some(Estimate { min: 0, max })))
            }
            "join" => {
                let list = of_target()?;
                let mut size = self.element(target?).map_or(ZERO, |(_, element)| list.times(element));
                if let Some(separator) = arg(0) {
                    let between =
                        Estimate { min: list.min.saturating_sub(1), max: list.max.saturating_sub(1) };
                    size = size.plus(separator.times(between));
                }
                Some((size.factor(TRAVERSAL), Some(size)))
            }
            "find" | "findAll" => {
                let size = of_target()?;
                let cost = size.plus(ONE).factor(TRAVERSAL).times(arg(0)?.factor(REGEX));
                Some((cost, Some(Estimate { min: 0, max: size.max })))
            }
            "ip" if overload == "cidr_ip" => Some((ONE, None)),
            "ip" | "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => parsed(),
            "ip.isCanonical" => Some((arg(0)?.factor(2.0 * TRAVERSAL), None)),
            "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery" => Some((ONE, None)),
            "containsIP" | "containsCIDR" => {
                let bytes = Estimate { min: 4, max: 16 };
                let mut cost = bytes.plus(bytes).factor(TRAVERSAL);
                if function == "containsCIDR" {
                    cost = cost.plus(bytes.factor(TRAVERSAL)).plus(ONE);
                }
                if overload.ends_with("_string") {
                    cost = cost.plus(arg(0)?.factor(TRAVERSAL));
                }
                Some((cost, None))
            }
            "validate" => Some((arg(0)?.factor(TRAVERSAL).factor(128.0 * REGEX), None)),
            "_==_" => self.library_equality(args),
            _ => None,
        }
    }

    fn library_equality(&self, args: &[Expr]) -> Option<(Estimate, Option<Estimate>)> {
        let [left, right] = args else { return None };
        if self.ty(left) != self.ty(right) {
            return None;
        }
        let (Type::Opaque(name, _) | Type::Struct(name)) = self.ty(left) else { return None };
        let cost = match &**name {
            "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => ONE,
            "kubernetes.NamedFormat" => Estimate { min: 1, max: 64 }.factor(TRAVERSAL),
            "kubernetes.URL" => {
                Estimate { min: 1, max: self.size(right).map_or(1, |size| size.max) }.factor(TRAVERSAL)
            }
            _ => return None,
        };
        Some((cost, None))
    }
}

fn scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        other => other.unwrap_optional().is_some_and(scalar),
    }
}

/// Size of a text after parts of it were replaced.
fn replaced(text: Estimate, from: Estimate, to: Estimate) -> Estimate {
    let (mut count, mut kept) = (ZERO, ZERO);
    if from.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if to.max <= from.min {
        kept.max = text.max;
    } else {
        count.max = text.max.div_ceil(from.min);
    }
    if from.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if from.max <= to.min {
        kept.min = text.min;
    } else {
        count.min = text.min.div_ceil(from.max);
    }
    count.times(to).plus(kept)
}
