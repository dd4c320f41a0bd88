// Time per new token of GPT-2 with a KV cache, after a short prompt. Prints one JSON object.
//
//   build/bin/bench/decode --folder FOLDER --bf16      (FOLDER: decode_transformers.py --make)

#include <ATen/Parallel.h>
#include <tandem/checkpoint.h>
#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "models/gpt2/generate.h"
#include "models/gpt2/hugging_face.h"
#include "run_bench.h"

namespace tandem::bench {

struct DecodeOptions {
  std::filesystem::path folder;
  bool bf16 = false;
  int threads = 2;
  std::int64_t tokens = 64;
  int runs = 1;
};

template <class Visitor>
void visit_fields(DecodeOptions& o, Visitor&& field) {
  field("folder", o.folder, "a GPT-2 of Hugging Face");
  field("bf16", o.bf16, "weights of 16 bits");
  field("threads", o.threads, "that share an operation");
  field("tokens", o.tokens, "to generate");
  field("runs", o.runs, "how often; the first of them is preceded by one that does not count");
}

namespace {

Gpt2 load(const std::filesystem::path& folder) {
  Gpt2 model(read_hugging_face_config(read_file(folder / "config.json"), "config.json"));
  load_weights(*model, gpt2_weights(load_safetensors(folder)), {.cast = true});
  return model;
}

Json measure(const DecodeOptions& options, const World&) {
  at::set_num_threads(options.threads);
  Gpt2 model = load(options.folder);
  prepare_to_generate(model, torch::kCPU, options.bf16 ? torch::kBFloat16 : torch::kFloat);
  const std::vector<Prompt> prompt = {{{464, 3290, 318, 257, 845, 922, 1545, 290}, 0}};
  const GenerateOptions generation{.max_new_tokens = options.tokens};
  generate(model, prompt, generation);
  Json::Array times;
  std::vector<Tokens> texts;
  for (int run = 0; run < options.runs; ++run) {
    const Stopwatch watch;
    texts = generate(model, prompt, generation);
    times.emplace_back(1000 * watch.seconds() / static_cast<double>(options.tokens));
  }
  return Json::Object{{"token_ms", times}, {"tokens", Json::Array(texts[0].begin(), texts[0].end())}};
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  return tandem::bench::run_bench<tandem::bench::DecodeOptions>({argv + 1, argv + argc}, "decode",
                                                                "Times the decoding of GPT-2.", tandem::bench::measure);
}
