//! Lists that stay still while hosts synchronize.
