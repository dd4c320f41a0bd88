// Owns the precompiled header that the programs share.
