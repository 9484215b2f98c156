//! One file for each meeting.

mod quota;
