"""How compiled functions watch Python: what they read is recorded, what they write is repeated.

`recorder` begins and ends the recording of a trace; a Recorder is one object, whose methods are
divided by what they watch: `outside` (objects and guards), `code`, `attributes`, `containers`,
`stores` and `calls`. `instrument` puts `hooks` into bytecode. `guards` are what a plan takes for
granted, `snapshots` tell what was written, `places` what becomes an input. `watched_code` and
`world` say what is not watched, and what is refused.
"""
