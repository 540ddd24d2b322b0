//! Data that compresses in different ways.

use super::Rng;

/// Data of a kind.
pub fn make_data(rng: &mut Rng, kind: &str, typesize: usize, nbytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(nbytes + typesize);
    match kind {
        "zeros" => out.resize(nbytes, 0),
        "constant" => {
            let item = rng.bytes(typesize);
            while out.len() < nbytes {
                out.extend(&item);
            }
        }
        "ramp" | "noisy" => {
            let (mut value, step) = (rng.next() >> 20, rng.next() >> rng.range(40, 62));
            let noise = if kind == "noisy" { rng.range(2, 200) } else { 1 };
            let mut item = vec![0; typesize.max(8)];
            while out.len() < nbytes {
                value = value.wrapping_add(step).wrapping_add(rng.below(noise) as u64);
                item[..8].copy_from_slice(&value.to_le_bytes());
                out.extend(&item[..typesize]);
            }
        }
        "text" => {
            let words: Vec<Vec<u8>> = (0..rng.range(5, 300))
                .map(|_| (0..rng.range(1, 9)).map(|_| b'a' + rng.bytes(1)[0] % 26).collect())
                .collect();
            while out.len() < nbytes {
                out.extend(&words[rng.below(words.len())]);
                out.push(b' ');
            }
        }
        "patches" => {
            // Runs of zeros, of a value, and noise, so that a chunk has streams of every form.
            while out.len() < nbytes {
                let len = rng.range(1, 20_000);
                match rng.below(4) {
                    0 => out.resize(out.len() + len, 0),
                    1 => out.resize(out.len() + len, rng.bytes(1)[0]),
                    2 => out.extend(rng.bytes(len)),
                    _ => out.extend((0..len).map(|i| (i % 251).to_le_bytes()[0])),
                }
            }
        }
        "pattern" => {
            let len = rng.range(2, 3000);
            let piece = rng.bytes(len);
            while out.len() < nbytes {
                out.extend(&piece);
            }
        }
        _ => out = rng.bytes(nbytes),
    }
    out.truncate(nbytes);
    out
}
