//! What the wire makes in the kernel: namespaces, interfaces, addresses, routes.
