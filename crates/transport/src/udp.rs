//! UDP (RFC 768) as an endpoint: messages to datagrams and back.
