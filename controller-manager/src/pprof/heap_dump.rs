//! The heap profile that jemalloc writes, as a [`Profile`]. Pure.

use super::maps::executable;
use super::profile::Profile;

/// Parses a dump of jemalloc. Its first line has the number of bytes between two samples.
///
/// ```text
/// heap_v2/524288
///   t*: 7: 3744 [0: 0]
/// @ 0x55d0c0b01234 0x55d0c0b05678
///   t*: 2: 1024 [0: 0]
///   t3: 2: 1024 [0: 0]
///
/// MAPPED_LIBRARIES:
/// 55d0c0b00000-55d0c0c00000 r-xp 00100000 08:01 131    /usr/bin/kcm
/// ```
///
/// Returns `None` if the text is not such a dump.
///
/// # Upstream
/// `jeprof`, which comes with jemalloc, estimates the memory in use in the same way.
pub(super) fn parse(dump: &str) -> Option<Profile> {
    let (counts, maps) = dump.split_once("\nMAPPED_LIBRARIES:\n")?;
    let mut lines = counts.lines();
    let every: u64 = lines.next()?.strip_prefix("heap_v2/")?.parse().ok()?;
    let mut profile = Profile {
        types: vec![("inuse_objects", "count"), ("inuse_space", "bytes")],
        period: Some((("space", "bytes"), every.cast_signed())),
        mappings: executable(maps),
        ..Profile::default()
    };
    let mut stack = None;
    for line in lines {
        if let Some(addresses) = line.strip_prefix("@ ") {
            stack = Some(addresses.split(' ').filter_map(call).collect());
        } else if let Some(counts) = line.strip_prefix("  t*: ")
            && let Some(stack) = stack.take()
        {
            let (objects, bytes) = in_use(counts)?;
            let (objects, bytes) = estimate(objects, bytes, every);
            profile.add(None, stack, &[objects, bytes]);
        }
    }
    Some(profile)
}

/// The address of the call instruction before a return address.
fn call(address: &str) -> Option<u64> {
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    Some(address.saturating_sub(1))
}

/// Returns the objects and bytes of `2: 1024 [0: 0]`. The brackets have all allocations since the start.
fn in_use(counts: &str) -> Option<(u64, u64)> {
    let (objects, bytes) = counts.split_once(" [")?.0.split_once(": ")?;
    Some((objects.parse().ok()?, bytes.parse().ok()?))
}

/// Estimates the memory in use from its samples. An allocation of a size is sampled with the probability 1 - e^(-size /
/// every).
///
/// Two sampled objects of 512 bytes each stand for 1024 / (1 - e^(-512 / 524288)) = 1,049,088 bytes.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "an estimate; floats are cut to what fits"
)]
fn estimate(objects: u64, bytes: u64, every: u64) -> (i64, i64) {
    if objects == 0 || bytes == 0 || every == 0 {
        return (objects.cast_signed(), bytes.cast_signed());
    }
    let size = bytes as f64 / objects as f64;
    let scale = 1.0 / -(-size / every as f64).exp_m1();
    ((objects as f64 * scale).round() as i64, (bytes as f64 * scale).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
heap_v2/524288
  t*: 3: 1049600 [0: 0]
  t0: 3: 1049600 [0: 0]
@ 0x1001 0x2001
  t*: 2: 1024 [0: 0]
  t0: 2: 1024 [0: 0]
@ 0x3001
  t*: 1: 1048576 [0: 0]

MAPPED_LIBRARIES:
00001000-00004000 r-xp 00000000 08:01 131    /usr/bin/kcm
";

    #[test]
    fn what_is_in_use_is_estimated_from_what_was_sampled() {
        let profile = parse(DUMP).expect("it is a dump");
        let samples: Vec<_> =
            profile.samples.iter().map(|((_, stack), values)| (stack.clone(), values.clone())).collect();
        assert_eq!(samples, [(vec![0x1000, 0x2000], vec![2049, 1_049_088]), (vec![0x3000], vec![1, 1_212_697])]);
        assert_eq!(profile.mappings.len(), 1);
    }

    #[test]
    fn anything_else_is_refused() {
        for dump in ["", "heap_v2/524288", "heap_v2/x\nMAPPED_LIBRARIES:\n", &DUMP.replace("1024 [", "many [")] {
            assert!(parse(dump).is_none(), "{dump}");
        }
    }
}
