//! Slash-separated paths, as Go's `path` has them.

use orlop_gotemplate::{Func, Type, Value};

use super::{func, text};

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    let mut all = Vec::new();
    for (name, os, body) in [
        ("base", "osBase", (|args| Ok(Value::from(base(text(&args[0]))))) as fn(&[Value]) -> _),
        ("dir", "osDir", |args| Ok(Value::from(dir(text(&args[0]))))),
        ("clean", "osClean", |args| Ok(Value::from(clean(text(&args[0]))))),
        ("ext", "osExt", |args| Ok(Value::string(ext(text(&args[0]))))),
    ] {
        all.push((name, func(&[Type::Str], Type::Str, body)));
        all.push((os, func(&[Type::Str], Type::Str, body)));
    }
    for name in ["isAbs", "osIsAbs"] {
        all.push((name, func(&[Type::Str], Type::Bool, |args| Ok(text(&args[0]).starts_with(b"/").into()))));
    }
    all
}

fn base(path: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        return b".".to_vec();
    }
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
    if end == 0 {
        return b"/".to_vec();
    }
    let start = path[..end].iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    path[start..end].to_vec()
}

fn dir(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    clean(&path[..end])
}

fn ext(path: &[u8]) -> &[u8] {
    let name = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    match path[name..].iter().rposition(|b| *b == b'.') {
        Some(dot) => &path[name + dot..],
        None => b"",
    }
}

fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            b".." if rooted => {}
            part => parts.push(part),
        }
    }
    let mut out = if rooted { b"/".to_vec() } else { Vec::new() };
    out.extend_from_slice(&parts.join(&b'/'));
    if out.is_empty() { b".".to_vec() } else { out }
}
