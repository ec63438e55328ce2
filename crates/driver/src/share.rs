//! Who may begin something when only so much is done at once: a side that answers nothing must not keep the others waiting.

/// For so many of what is done at once, room is kept for each side.
const KEPT: usize = 4;

/// True if one of `all` sides may begin something more. `running` says how much is done at each of them, and `free` how much
/// more may begin. Some room is kept for each side, whatever the others do.
pub fn may_begin<S: PartialEq>(
    side: &S,
    all: impl Iterator<Item = S> + Clone,
    at_once: usize,
    free: usize,
    running: impl Fn(&S) -> usize,
) -> bool {
    let kept = (at_once / (2 * all.clone().count().max(1))).clamp(1, KEPT);
    let of_others = all
        .filter(|other| other != side)
        .map(|other| kept.saturating_sub(running(&other)));
    free > 0 && (running(side) < kept || free > of_others.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much is done in the end at each side, when all have more to do than may be done, and none ever ends; they come
    /// one after the other.
    fn fill(sides: usize, at_once: usize) -> Vec<usize> {
        let mut running = vec![0; sides];
        for side in 0..sides {
            while may_begin(
                &side,
                0..sides,
                at_once,
                at_once - running.iter().sum::<usize>(),
                |it| running[*it],
            ) {
                running[side] += 1;
            }
        }
        running
    }

    #[test]
    fn room_is_kept_for_each_side() {
        for (sides, at_once, expected) in [
            (1, 24, &[24][..]),
            (2, 24, &[20, 4]),
            (3, 24, &[16, 4, 4]),
            (6, 24, &[14, 2, 2, 2, 2, 2]),
            (1, 4, &[4]),
            (2, 4, &[3, 1]),
            (4, 4, &[1, 1, 1, 1]),
            // More than may be done: who is there first.
            (6, 4, &[1, 1, 1, 1, 0, 0]),
        ] {
            assert_eq!(fill(sides, at_once), expected, "{sides} {at_once}");
        }
    }
}
