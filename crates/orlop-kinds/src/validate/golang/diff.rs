//! Unified differences as Python's and Go's difflib make them: longest matching blocks first, junk ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const CONTEXT: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Equal,
    Replace,
    Delete,
    Insert,
}

/// One step that turns lines `a.0..a.1` into lines `b.0..b.1`.
#[derive(Clone, Copy)]
struct Step {
    tag: Tag,
    a: (usize, usize),
    b: (usize, usize),
}

/// The unified difference of two texts, without file names.
pub(super) fn unified(a: &str, b: &str) -> String {
    let a: Vec<&str> = a.split('\n').collect();
    let b: Vec<&str> = b.split('\n').collect();
    let mut out = String::new();
    for group in groups(steps(&a, &b)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (in_a, in_b) = (range(first.a.0, last.a.1), range(first.b.0, last.b.1));
        let _ = writeln!(out, "@@ -{in_a} +{in_b} @@");
        for step in &group {
            let mut write = |sign: char, lines: &[&str]| {
                for line in lines {
                    out.push(sign);
                    out.push_str(line);
                    out.push('\n');
                }
            };
            if step.tag == Tag::Equal {
                write(' ', &a[step.a.0..step.a.1]);
                continue;
            }
            if step.tag != Tag::Insert {
                write('-', &a[step.a.0..step.a.1]);
            }
            if step.tag != Tag::Delete {
                write('+', &b[step.b.0..step.b.1]);
            }
        }
    }
    out
}

fn range(start: usize, stop: usize) -> String {
    match stop - start {
        1 => (start + 1).to_string(),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

/// Where each line of `b` stands, without lines that are too common to be worth matching.
fn positions<'a>(b: &[&'a str]) -> BTreeMap<&'a str, Vec<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    if b.len() >= 200 {
        let limit = b.len() / 100 + 1;
        places.retain(|_, at| at.len() <= limit);
    }
    places
}

fn longest(
    a: &[&str],
    b: &[&str],
    places: &BTreeMap<&str, Vec<usize>>,
    (a_low, a_high): (usize, usize),
    (b_low, b_high): (usize, usize),
) -> (usize, usize, usize) {
    let (mut best_a, mut best_b, mut size) = (a_low, b_low, 0);
    let mut ending: BTreeMap<usize, usize> = BTreeMap::new();
    for (i, line) in a.iter().enumerate().take(a_high).skip(a_low) {
        let mut now = BTreeMap::new();
        for &j in places.get(line).map_or(&[][..], Vec::as_slice) {
            if j < b_low {
                continue;
            }
            if j >= b_high {
                break;
            }
            let length = 1 + j.checked_sub(1).and_then(|j| ending.get(&j)).copied().unwrap_or(0);
            now.insert(j, length);
            if length > size {
                (best_a, best_b, size) = (i + 1 - length, j + 1 - length, length);
            }
        }
        ending = now;
    }
    while best_a > a_low && best_b > b_low && a[best_a - 1] == b[best_b - 1] {
        (best_a, best_b, size) = (best_a - 1, best_b - 1, size + 1);
    }
    while best_a + size < a_high && best_b + size < b_high && a[best_a + size] == b[best_b + size] {
        size += 1;
    }
    (best_a, best_b, size)
}

fn steps(a: &[&str], b: &[&str]) -> Vec<Step> {
    let places = positions(b);
    let mut blocks: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
    let mut waiting = vec![((0, a.len()), (0, b.len()))];
    while let Some((in_a, in_b)) = waiting.pop() {
        let (i, j, size) = longest(a, b, &places, in_a, in_b);
        if size == 0 {
            continue;
        }
        blocks.insert((i, j, size));
        if in_a.0 < i && in_b.0 < j {
            waiting.push(((in_a.0, i), (in_b.0, j)));
        }
        if i + size < in_a.1 && j + size < in_b.1 {
            waiting.push(((i + size, in_a.1), (j + size, in_b.1)));
        }
    }
    let mut out: Vec<Step> = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (at_a, at_b, size) in blocks.into_iter().chain([(a.len(), b.len(), 0)]) {
        let tag = match (i < at_a, j < at_b) {
            (true, true) => Some(Tag::Replace),
            (true, false) => Some(Tag::Delete),
            (false, true) => Some(Tag::Insert),
            (false, false) => None,
        };
        if let Some(tag) = tag {
            out.push(Step { tag, a: (i, at_a), b: (j, at_b) });
        }
        (i, j) = (at_a + size, at_b + size);
        match out.last_mut() {
            Some(last) if size > 0 && tag.is_none() && last.tag == Tag::Equal => {
                (last.a.1, last.b.1) = (i, j);
            }
            _ if size > 0 => out.push(Step { tag: Tag::Equal, a: (at_a, i), b: (at_b, j) }),
            _ => {}
        }
    }
    out
}

/// Splits the steps into hunks with a few equal lines around each.
fn groups(mut steps: Vec<Step>) -> Vec<Vec<Step>> {
    if let Some(first) = steps.first_mut()
        && first.tag == Tag::Equal
    {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(CONTEXT));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = steps.last_mut()
        && last.tag == Tag::Equal
    {
        last.a.1 = last.a.1.min(last.a.0 + CONTEXT);
        last.b.1 = last.b.1.min(last.b.0 + CONTEXT);
    }
    let mut out = Vec::new();
    let mut group: Vec<Step> = Vec::new();
    for mut step in steps {
        if step.tag == Tag::Equal && step.a.1 - step.a.0 > 2 * CONTEXT {
            group.push(Step {
                tag: Tag::Equal,
                a: (step.a.0, step.a.0 + CONTEXT),
                b: (step.b.0, step.b.0 + CONTEXT),
            });
            out.push(std::mem::take(&mut group));
            step.a.0 = step.a.1 - CONTEXT;
            step.b.0 = step.b.1 - CONTEXT;
        }
        group.push(step);
    }
    out.push(group);
    out.retain(|g| g.iter().any(|s| s.tag != Tag::Equal));
    out
}
