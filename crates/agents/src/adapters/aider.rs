//! To be written.

use crate::event::Ending;
use crate::spec::Spec;
use crate::wire::Wire;

pub(super) async fn converse(_spec: &Spec, _wire: &mut Wire) -> Option<Ending> {
    Some(Ending::Unfit {
        note: String::from("this adapter is not written yet"),
    })
}
