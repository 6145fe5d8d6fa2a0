//! Rendering: the functions that execute templates, and the order in which a chart's files are parsed and run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use orlop_gotemplate::{
    CallResult, Context, Error, Func, FuncError, Limits, MissingKey, Set, Stage, Str, Type, Value,
};

use crate::sprig;

/// How often a template may be included from within itself.
const INCLUDE_MAX: usize = 1000;
const FAIL_START: &str = "HELM_ERR_START";
const FAIL_END: &str = "HELM_ERR_END";

/// A file of a chart, as it is rendered.
#[derive(Clone, Debug)]
pub struct File {
    /// The path below the chart's name, such as `web/templates/service.yaml`
    pub path: String,
    /// The template text
    pub text: Str,
    /// What the template sees; the engine adds `Template`
    pub data: BTreeMap<Str, Value>,
    /// The directory that `.Template.BasePath` names
    pub base_path: String,
}

/// Why a chart could not be rendered, in Helm's words.
#[derive(Clone, Debug)]
pub struct RenderError {
    text: String,
    source: Error,
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for RenderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Renders files that see each other's definitions; partials are parsed but not rendered.
pub fn render(
    files: &[File],
    missing_key: MissingKey,
    limits: Limits,
) -> Result<BTreeMap<String, Vec<u8>>, RenderError> {
    let mut set = Set::named("gotpl").option(missing_key).limits(limits);
    set = set.funcs(sprig::functions()).funcs(functions());
    let mut ordered: Vec<&File> = files.iter().collect();
    // Deep files first, and among equals the later name: the last definition of a template wins.
    let slashes = |path: &str| path.bytes().filter(|b| *b == b'/').count();
    ordered.sort_by(|a, b| (slashes(&b.path), &b.path).cmp(&(slashes(&a.path), &a.path)));
    for file in &ordered {
        set.parse(file.path.as_str(), file.text.clone()).map_err(refused)?;
    }
    let mut rendered = BTreeMap::new();
    for file in ordered {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        if name.starts_with('_') {
            continue;
        }
        let template = Value::map([
            ("Name", Value::from(file.path.as_str())),
            ("BasePath", Value::from(file.base_path.as_str())),
        ]);
        let mut data = file.data.clone();
        data.insert(Str::from("Template"), template);
        let mut out = Vec::new();
        set.execute(&file.path, &Value::map(data), &mut out).map_err(refused)?;
        rendered.insert(file.path.clone(), without_no_value(&out));
    }
    Ok(rendered)
}

fn refused(source: Error) -> RenderError {
    RenderError { text: describe(&source), source }
}

/// An error of a template in Helm's words.
pub fn describe(error: &Error) -> String {
    if error.stage() == Stage::Parse {
        // Helm keeps what follows the last colon.
        let message = error.message().rsplit(": ").next().unwrap_or_default();
        return format!("parse error at ({}:{}): {message}", error.file(), error.line());
    }
    failure(error).or_else(|| trace(error)).unwrap_or_else(|| error.to_string())
}

fn place(error: &Error) -> String {
    let column = error.column().map(|column| format!(":{column}")).unwrap_or_default();
    format!("{}:{}{column}", error.file(), error.line())
}

/// What `fail` or `required` said, named by the place in the rendered file.
fn failure(error: &Error) -> Option<String> {
    let text = error.to_string();
    let start = text.find(FAIL_START)? + FAIL_START.len();
    let end = text.rfind(FAIL_END).filter(|end| *end >= start)?;
    Some(format!("execution error at ({}): {}", place(error), &text[start..end]))
}

/// The chain of includes over several lines. There is none where a function failed by itself.
fn trace(error: &Error) -> Option<String> {
    let (mut out, mut next) = (String::new(), Some(error));
    while let Some(error) = next {
        if error.stage() != Stage::Execute {
            out.push_str(&error.to_string());
            break;
        }
        let message = error.message();
        next = error.cause();
        if message.starts_with("error calling ") {
            let cause = next.map(|cause| format!(": {cause}"));
            if !cause.is_some_and(|cause| message.ends_with(&cause)) {
                return None;
            }
        }
        let own = message.split(" template:").next().unwrap_or_default();
        let (place, template, context) = (place(error), error.template(), error.context());
        out.push_str(&format!("{place}\n  executing \"{template}\" at <{context}>:\n    {own}\n"));
    }
    Some(out.trim().to_owned())
}

/// The functions of Helm's engine, with nothing looked up in a cluster or in the DNS.
pub fn functions() -> Vec<(&'static str, Func)> {
    let nested: Rc<RefCell<BTreeMap<Str, usize>>> = Rc::default();
    let any = || Type::Any;
    vec![
        (
            "include",
            Func::new([Type::Str, any()], Type::Str, move |context, args| include(context, &nested, args))
                .fallible(),
        ),
        ("tpl", Func::new([Type::Str, any()], Type::Str, tpl).fallible()),
        (
            "required",
            Func::new([Type::Str, any()], any(), |_, args| match &args[1] {
                Value::Nil => Err(raised(&args[0])),
                Value::Str(text) if text.is_empty() => Err(raised(&args[0])),
                given => Ok(given.clone()),
            })
            .fallible(),
        ),
        ("fail", Func::new([Type::Str], Type::Str, |_, args| Err(raised(&args[0]))).fallible()),
        (
            "lookup",
            Func::new([Type::Str, Type::Str, Type::Str, Type::Str], Type::map(any()), |_, _| {
                Ok(Value::map::<Str>([]))
            })
            .fallible(),
        ),
        ("getHostByName", Func::new([Type::Str], Type::Str, |_, _| Ok("".into()))),
    ]
}

fn text(value: &Value) -> Str {
    match value {
        Value::Str(text) => text.clone(),
        _ => Str::from(""),
    }
}

/// Marks a message, so that the error around it can be cut away.
fn raised(message: &Value) -> FuncError {
    FuncError::new(format!("{FAIL_START}{}{FAIL_END}", text(message).to_text()))
}

fn include(context: &mut Context<'_>, nested: &RefCell<BTreeMap<Str, usize>>, args: &[Value]) -> CallResult {
    let name = text(&args[0]);
    let depth = nested.borrow().get(&name).copied().unwrap_or(0);
    if depth > INCLUDE_MAX {
        return Err(FuncError::new(format!(
            "rendering template has a nested reference name: {}: unable to execute template",
            name.to_text()
        )));
    }
    nested.borrow_mut().insert(name.clone(), depth + 1);
    let result = context.execute(&name, &args[1]);
    nested.borrow_mut().insert(name, depth);
    Ok(Value::from(result?))
}

/// Renders a text in a copy of the set, so that what it defines is seen only inside.
fn tpl(context: &mut Context<'_>, args: &[Value]) -> CallResult {
    let source = text(&args[0]);
    let quoted = || {
        let shown = orlop_gotemplate::fmt::sprintf(b"%q", &args[..1]);
        String::from_utf8_lossy(&shown).into_owned()
    };
    let mut set = context.set().clone();
    let name = set.name().clone();
    let template = set.parse(name, source).map_err(|error| {
        let text = format!("cannot parse template {}: {error}", quoted());
        FuncError::from(error).reworded(text)
    })?;
    let out = context.execute_in(&set, &template, &args[1]).map_err(|error| {
        let text = format!("error during tpl function execution for {}: {error}", quoted());
        FuncError::from(error).reworded(text)
    })?;
    Ok(Value::from(without_no_value(&out)))
}

/// Drops what Go prints for missing values.
fn without_no_value(out: &[u8]) -> Vec<u8> {
    const NO_VALUE: &[u8] = b"<no value>";
    let mut kept = Vec::with_capacity(out.len());
    let mut rest = out;
    while let Some(at) = rest.iter().position(|b| *b == b'<') {
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix(NO_VALUE) {
            rest = after;
        } else {
            kept.push(b'<');
            rest = &rest[1..];
        }
    }
    kept.extend_from_slice(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        let data = BTreeMap::from([(Str::from("Values"), Value::map([("a", Value::int(1))]))]);
        File { path: path.to_owned(), text: text.into(), data, base_path: "c/templates".to_owned() }
    }

    fn rendered(files: &[File]) -> Result<BTreeMap<String, Vec<u8>>, String> {
        render(files, MissingKey::Zero, Limits::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_shallowest_and_first_definition_wins() {
        let files = [
            file(
                "c/templates/a.yaml",
                "{{define \"x\"}}a{{end}}{{include \"x\" .}} {{.Template.Name}} {{.no}}",
            ),
            file("c/templates/b.yaml", "{{define \"x\"}}b{{end}}"),
            file("c/charts/d/templates/_c.tpl", "{{define \"x\"}}c{{end}}"),
        ];
        let rendered = rendered(&files).unwrap();
        assert_eq!(rendered["c/templates/a.yaml"], b"a c/templates/a.yaml ");
        assert_eq!(rendered.len(), 2);
    }

    #[test]
    fn errors_are_worded_like_those_of_helm() {
        for (text, expected) in [
            ("\n{{ fail \"boom\" }}", "execution error at (c/templates/a.yaml:2:3): boom"),
            ("{{ nosuch }}", "parse error at (c/templates/a.yaml:1): function \"nosuch\" not defined"),
            ("{{ required \"need\" .Values.b }}", "execution error at (c/templates/a.yaml:1:3): need"),
        ] {
            assert_eq!(rendered(&[file("c/templates/a.yaml", text)]).unwrap_err(), expected);
        }
    }

    #[test]
    fn definitions_in_tpl_stay_inside() {
        let text = r#"{{ tpl "{{define \"z\"}}Z{{end}}{{include \"z\" .}}{{.nope}}" . }}"#;
        assert_eq!(rendered(&[file("c/templates/a.yaml", text)]).unwrap()["c/templates/a.yaml"], b"Z");
    }
}
