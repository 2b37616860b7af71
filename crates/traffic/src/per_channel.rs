//! What a source keeps for each of its channels.

/// One value per channel. That of an only channel stands in the source itself, without a step through the heap: with
/// ten thousand sources of one channel, memory that is not at hand is what a message costs.
#[derive(Debug)]
pub(crate) enum PerChannel<T> {
    One(T),
    Many(Box<[T]>),
}

impl<T> PerChannel<T> {
    #[inline]
    pub(crate) fn of(&mut self, channel: u16) -> &mut T {
        match self {
            PerChannel::One(value) => value,
            PerChannel::Many(values) => &mut values[usize::from(channel)],
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, channel: u16) -> Option<&mut T> {
        match self {
            PerChannel::One(value) => (channel == 0).then_some(value),
            PerChannel::Many(values) => values.get_mut(usize::from(channel)),
        }
    }
}

/// The values of the channels in their order.
impl<T> FromIterator<T> for PerChannel<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> PerChannel<T> {
        let mut values: Vec<T> = values.into_iter().collect();
        match values.pop() {
            Some(only) if values.is_empty() => PerChannel::One(only),
            last => {
                values.extend(last);
                PerChannel::Many(values.into())
            }
        }
    }
}
