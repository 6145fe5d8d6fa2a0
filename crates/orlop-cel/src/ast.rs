//! The syntax tree: what the parser and its macros build, and what checker, estimator and evaluator walk.

/// Number of a node; positions, types and overloads are kept in tables by it.
pub(crate) type Id = usize;

/// One node.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    /// The node's number.
    pub(crate) id: Id,
    /// Height of the tree below it, so that recursion stays bounded.
    pub(crate) height: usize,
    /// What it is.
    pub(crate) kind: Kind,
}

/// What a node is.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A constant.
    Literal(Literal),
    /// A variable or type name.
    Ident(String),
    /// `operand.field`, or its presence test.
    Select { operand: Box<Expr>, field: String, test: bool },
    /// A call; operators are calls of `_+_` and the like.
    Call { function: String, target: Option<Box<Expr>>, args: Vec<Expr> },
    /// `[a, ?b]` with the indices of optional elements.
    List { items: Vec<Expr>, optional: Vec<usize> },
    /// `{k: v, ?k: v}`.
    Map { entries: Vec<(Expr, Expr, bool)> },
    /// `Name{field: value, ?field: value}`.
    Struct { name: String, fields: Vec<Field> },
    /// A loop, written by a macro.
    Fold(Box<Fold>),
}

/// A field of a `Name{…}`.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Number of the field, whose place is its colon.
    pub(crate) id: Id,
    pub(crate) name: String,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A loop over a list or map with an accumulator.
#[derive(Debug, Clone)]
pub(crate) struct Fold {
    /// First loop variable.
    pub(crate) iter: String,
    /// Second loop variable of the two-variable macros.
    pub(crate) iter2: Option<String>,
    /// What is walked.
    pub(crate) range: Expr,
    /// Name of the accumulator.
    pub(crate) accu: String,
    /// First value of the accumulator.
    pub(crate) init: Expr,
    /// The loop goes on while this holds.
    pub(crate) condition: Expr,
    /// Next value of the accumulator.
    pub(crate) step: Expr,
    /// Value of the whole.
    pub(crate) result: Expr,
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

impl Expr {
    /// How many nodes the tree has.
    pub(crate) fn weight(&self) -> usize {
        let all = |exprs: &[Expr]| exprs.iter().map(Expr::weight).sum::<usize>();
        1 + match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) => 0,
            Kind::Select { operand, .. } => operand.weight(),
            Kind::Call { target, args, .. } => target.as_ref().map_or(0, |t| t.weight()) + all(args),
            Kind::List { items, .. } => all(items),
            Kind::Map { entries } => {
                entries.iter().map(|(key, value, _)| key.weight() + value.weight()).sum()
            }
            Kind::Struct { fields, .. } => fields.iter().map(|f| f.value.weight()).sum(),
            Kind::Fold(f) => {
                [&f.range, &f.init, &f.condition, &f.step, &f.result].iter().map(|e| e.weight()).sum()
            }
        }
    }

    /// The dotted name `a.b.c`, if the node is one.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.clone()),
            Kind::Select { operand, field, test: false } => {
                Some(format!("{}.{field}", operand.qualified_name()?))
            }
            _ => None,
        }
    }
}
