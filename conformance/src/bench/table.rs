//! The result: one row per figure, with its bar.

use std::fmt;

/// Figures as a Markdown table.
#[derive(Default)]
pub(crate) struct Table(Vec<[String; 5]>);

/// What a figure must be.
#[derive(Clone, Copy)]
pub(crate) enum Bar {
    AtMost(f64),
    None,
}

impl Table {
    /// Adds a figure.
    pub(crate) fn row(&mut self, what: impl Into<String>, figure: f64, unit: &str, bar: Bar) {
        let (wanted, met) = match bar {
            Bar::AtMost(most) => (format!("≤ {most} {unit}"), figure <= most),
            Bar::None => (String::new(), true),
        };
        let verdict = if wanted.is_empty() {
            ""
        } else if met {
            "yes"
        } else {
            "NO"
        };
        self.note(what, format!("{figure:.2} {unit}"), "", wanted, verdict);
    }

    /// Adds a figure beside that of a real server, with how many times faster it is.
    pub(crate) fn versus(
        &mut self,
        what: impl Into<String>,
        seconds: f64,
        real: f64,
        source: &str,
        least: f64,
    ) {
        let ratio = real / seconds;
        let verdict = if ratio >= least { "yes" } else { "NO" };
        self.note(
            what,
            format!("{seconds:.3} s"),
            format!("{real:.2} s ({source}), {ratio:.1} ×"),
            format!("≥ {least} ×"),
            verdict,
        );
    }

    fn note(
        &mut self,
        what: impl Into<String>,
        figure: String,
        real: impl Into<String>,
        bar: String,
        met: &str,
    ) {
        self.0.push([what.into(), figure, real.into(), bar, met.to_owned()]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | orlop | kube-apiserver + etcd | bar | met |")?;
        write!(f, "| --- | --- | --- | --- | --- |")?;
        self.0.iter().try_for_each(|row| write!(f, "\n| {} |", row.join(" | ")))
    }
}
