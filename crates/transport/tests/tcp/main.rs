//! TCP end to end.

use trunkline_testkit::alloc::CountingAllocator;

mod allocation;
mod behaviour;
mod goodput;
mod observed;
mod options;
mod properties;
mod scripts;
mod windows;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
