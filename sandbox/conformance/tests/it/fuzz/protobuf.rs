//! Random protobuf messages: mostly valid on the wire, with arbitrary fields.

use crate::fuzz::choices::Choices;
use crate::fuzz::odd;

/// A random object in Kubernetes' protobuf envelope (`k8s\0` and a `runtime.Unknown`); one in four has a flipped bit.
pub(crate) fn envelope(choices: &mut Choices, api_version: &str, kind: &str) -> Vec<u8> {
    let identity = [part(1, api_version.as_bytes()), part(2, kind.as_bytes())].concat();
    let metadata = [part(1, choices.one(odd::STRINGS).as_bytes()), message(choices, 2)].concat();
    let content = [part(1, &metadata), part(2, &message(choices, 6)), message(choices, 2)].concat();
    let mut body = [b"k8s\0".to_vec(), part(1, &identity), part(2, &content)].concat();
    if choices.once_in(4) {
        let at = choices.below(body.len());
        body[at] ^= 1 << choices.below(8);
    }
    body
}

fn message(choices: &mut Choices, depth: usize) -> Vec<u8> {
    let mut message = Vec::new();
    for _ in 0..choices.below(5) {
        let number = choices.one(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 17, 20, 22, 25, 34]);
        match choices.below(6) {
            0 => {
                message.extend(varint(number << 3));
                let numbers = [0, 1, 80, u64::from(u32::MAX), 1 << 31, 1 << 62, u64::MAX, 1 << 63];
                message.extend(varint(choices.one(&numbers)));
            }
            1 => {
                message.extend(varint(number << 3 | 1));
                message.extend(f64::NAN.to_le_bytes());
            }
            2 => message.extend(part(number, choices.one(odd::STRINGS).as_bytes())),
            3 => message.extend(part(number, &choices.bytes(8))),
            _ if depth == 0 => {}
            _ => {
                let inner = self::message(choices, depth - 1);
                message.extend(part(number, &inner));
            }
        }
    }
    message
}

fn part(number: u64, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}
