// Compiles WebAssembly once, with V8's baseline compiler, and not a second time for speed that no test
// is long enough to gain from: half of what Qwen Code computes at a start.
require('node:v8').setFlagsFromString('--liftoff-only');
