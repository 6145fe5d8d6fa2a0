//! What a text allows: plain, quoted or literal.

/// Which styles can hold a scalar outside of flow collections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Analysis {
    pub(super) multiline: bool,
    pub(super) plain: bool,
    pub(super) single_quoted: bool,
    pub(super) block: bool,
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What the emitter writes as it is; nothing beyond the basic plane, and no tab.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

pub(super) fn analyze(text: &str) -> Analysis {
    if text.is_empty() {
        return Analysis { multiline: false, plain: true, single_quoted: true, block: false };
    }
    let chars: Vec<char> = text.chars().collect();
    let blank = |at: usize| chars.get(at).is_none_or(|c| matches!(c, ' ' | '\t'));
    let mut indicators = text.starts_with("---") || text.starts_with("...");
    let (mut breaks, mut special) = (false, false);
    let (mut break_space, mut space_break) = (false, false);
    let (mut previous_space, mut previous_break) = (false, false);
    let mut after_blank = true;
    for (i, &c) in chars.iter().enumerate() {
        indicators |= match c {
            '#' => i == 0 || after_blank,
            ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
                i == 0
            }
            '?' | '-' => i == 0 && blank(i + 1),
            ':' => blank(i + 1),
            _ => false,
        };
        special |= !is_printable(c);
        if c == ' ' {
            break_space |= previous_break;
        } else if is_break(c) {
            breaks = true;
            space_break |= previous_space;
        }
        previous_space = c == ' ';
        previous_break = is_break(c);
        after_blank = matches!(c, ' ' | '\t' | '\0') || is_break(c);
    }
    let edge = |c: char| c == ' ' || is_break(c);
    let edges = edge(chars[0]) || edge(chars[chars.len() - 1]);
    let broken = space_break || special;
    Analysis {
        multiline: breaks,
        plain: !edges && !break_space && !broken && !breaks && !indicators,
        single_quoted: !break_space && !broken,
        block: chars[chars.len() - 1] != ' ' && !broken,
    }
}
