//! Source text, positions and the way errors show them.

/// One complaint about a position in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Offset in characters.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
}

/// Writes the issues as the compiler of Kubernetes does: place, message, source line and caret.
pub(crate) fn render(source: &str, issues: &[Issue]) -> String {
    issues.iter().map(|issue| render_one(source, issue)).collect::<Vec<_>>().join("\n")
}

fn render_one(source: &str, issue: &Issue) -> String {
    if source.is_empty() {
        return format!("ERROR: <input>:1:0: {}", issue.message);
    }
    let before: Vec<char> = source.chars().take(issue.offset).collect();
    let line = before.iter().filter(|&&c| c == '\n').count();
    let column = before.iter().rev().take_while(|&&c| c != '\n').count();
    let text = source.split('\n').nth(line).unwrap_or_default().replace('\t', " ");
    let wide = |c: char| c.len_utf8() > 1;
    let mut dots: String =
        text.chars().take(column).map(|c| if wide(c) { '\u{ff0e}' } else { '.' }).collect();
    dots.push(if text.chars().nth(column).is_some_and(wide) { '\u{ff3e}' } else { '^' });
    format!("ERROR: <input>:{}:{}: {}\n | {text}\n | {dots}", line + 1, column + 1, issue.message)
}
