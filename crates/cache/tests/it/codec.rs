//! Entries and records survive the way to the remote tier, and nothing else is taken for one.

use http::{HeaderName, HeaderValue};
use ogive_cache::{
    ClockStamp, Scope, Tag, Timestamp, Validators, Vary, VaryRecord,
    codec::{read_entry, read_record, write_entry, write_record},
};
use ogive_testbase::Rng;

use crate::made::entry;

#[test]
fn an_entry_is_read_as_it_was_written_and_damaged_ones_are_none() {
    let stamp = ClockStamp {
        epoch: 7,
        number: 9,
    };
    let mut entry = entry(r#"{"data":{}}"#, &[Tag(1), Tag(u64::MAX)], stamp);
    entry.validators = Validators {
        etag: Some(HeaderValue::from_static("\"a\"")),
        last_modified: None,
    };
    let name = HeaderName::from_static("x-a");
    entry.headers = [(name, HeaderValue::from_static("b"))].into();
    let bytes = write_entry(&entry);
    assert_eq!(read_entry(&bytes).as_ref(), Some(&entry));
    for cut in 0..bytes.len() {
        assert_eq!(read_entry(&bytes[..cut]), None, "cut at {cut}");
    }
    let mut rng = Rng::new(1);
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        let at = rng.below(damaged.len());
        damaged[at] = rng.next() as u8;
        // What can be read holds no more than it was given.
        if let Some(read) = read_entry(&damaged) {
            assert!(read.bytes() <= 2 * entry.bytes());
        }
    }
}

#[test]
fn a_record_is_read_as_it_was_written_and_damaged_ones_are_none() {
    let scope = Scope {
        by_credentials: false,
        by_private_id: true,
    };
    let names = ["x-b", "x-a"].map(HeaderName::from_static);
    for vary in [Vary::AllHeaders, Vary::naming(names.to_vec())] {
        let until = Timestamp(5);
        let record = VaryRecord { vary, scope, until };
        let bytes = write_record(&record);
        assert_eq!(read_record(&bytes).as_ref(), Some(&record));
        // A record without names is whole without them.
        let whole = write_record(&VaryRecord {
            vary: Vary::AllHeaders,
            ..record
        });
        for cut in (0..bytes.len()).filter(|cut| *cut != whole.len()) {
            assert_eq!(read_record(&bytes[..cut]), None, "cut at {cut}");
        }
    }
    assert_eq!(
        read_record(&write_entry(&entry("", &[], ClockStamp::default()))),
        None
    );
}
