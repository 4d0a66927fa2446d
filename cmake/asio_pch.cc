// Exists so that a target owns the precompiled header.
