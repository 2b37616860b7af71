//! What must hold of DCCP for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.
