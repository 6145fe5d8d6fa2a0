//! How long ago something was, in few words.

use crate::codec::instant;

const SECOND: i128 = 1_000_000_000;

/// The time between a printed time and now.
pub(super) fn since(time: &str, now_nanos: i128) -> String {
    nanos(time).map_or_else(|| "<unknown>".to_owned(), |time| human(now_nanos - time))
}

/// A printed time in nanoseconds since 1970.
pub(super) fn nanos(time: &str) -> Option<i128> {
    instant(time).map(|(seconds, nanos)| i128::from(seconds) * SECOND + i128::from(nanos))
}

/// A duration with two or three significant figures, as Kubernetes writes it.
pub(super) fn human(nanos: i128) -> String {
    // Go's durations end after 292 years.
    let nanos = nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    let seconds = nanos / SECOND;
    // Clocks may differ by less than two seconds.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    if seconds < 120 {
        return format!("{}s", seconds.max(0));
    }
    let with_rest = |many: i128, unit: &str, rest: i128, small: &str| match rest {
        0 => format!("{many}{unit}"),
        rest => format!("{many}{unit}{rest}{small}"),
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (minutes, hours) {
        (..10, _) => with_rest(minutes, "m", seconds % 60, "s"),
        (..180, _) => format!("{minutes}m"),
        (_, ..8) => with_rest(hours, "h", minutes % 60, "m"),
        (_, ..48) => format!("{hours}h"),
        (_, ..192) => with_rest(days, "d", hours % 24, "h"),
        (_, ..17_520) => format!("{days}d"),
        (_, ..70_080) => with_rest(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_kubernetes() {
        const DAY: i128 = 86_400;
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (8 * 3600 - 1, "7h59m"),
            (8 * 3600, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3600, "2d1h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (730 * DAY - 1, "729d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (8 * 365 * DAY, "8y"),
            (400 * 365 * DAY, "292y"),
        ] {
            assert_eq!(human(seconds * SECOND), expected, "{seconds}");
        }
        assert_eq!(since("", 0), "<unknown>");
        assert_eq!(since("1970-01-01T00:00:00Z", 90 * SECOND), "90s");
    }
}
