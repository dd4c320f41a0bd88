// Time to encode texts that are new to the process. Prints one JSON object.
//
//   build/bin/bench/bpe --train --folder FOLDER    trains the tokenizer in FOLDER with FOLDER/train.txt
//   build/bin/bench/bpe --folder FOLDER            encodes FOLDER/texts.txt and writes the ids to FOLDER/ids.bin

#include <fcntl.h>
#include <tandem/config.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "text/tokenizer.h"
#include "text/train_vocabulary.h"

namespace tandem::bench {

struct BpeOptions {
  std::string folder;
  bool train = false;
  std::int64_t size = 50257;
};

template <class Visitor>
void visit_fields(BpeOptions& o, Visitor&& field) {
  field("folder", o.folder, "where texts and tokenizer are");
  field("train", o.train, "make the tokenizer");
  field("size", o.size, "of the vocabulary to make");
}

namespace {

constexpr char kBetweenTexts = '\x1E';

std::vector<std::string> read_texts(const std::filesystem::path& path) { return split(read_file(path), kBetweenTexts); }

Json train(const BpeOptions& options) {
  const auto texts = read_texts(options.folder + "/train.txt");
  const Stopwatch watch;
  const Tokenizer tokenizer(train_vocabulary(texts, {.size = options.size}));
  const double seconds = watch.seconds();
  tokenizer.save(options.folder);
  return Json::Object{{"seconds", seconds}, {"size", tokenizer.size()}};
}

Json encode(const BpeOptions& options) {
  Tokenizer tokenizer = Tokenizer::load(options.folder);
  const auto texts = read_texts(options.folder + "/texts.txt");
  const Stopwatch watch;
  std::vector<TokenId> ids;
  for (const std::string& text : texts) tokenizer.encode(text, ids, Specials::AsText);
  const double seconds = watch.seconds();
  const Fd file(::open((options.folder + "/ids.bin").c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
  write_all(file.get(), {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId)});
  return Json::Object{{"seconds", seconds}, {"num_ids", static_cast<std::int64_t>(ids.size())}};
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  using namespace tandem;
  const std::vector<std::string> args(argv + 1, argv + argc);
  bench::BpeOptions options;
  const auto loaded =
      load_config(options, args, {.name = "bpe", .arguments = "", .about = "Times encoding.", .examples = {}});
  const auto measure = [&] { return options.train ? bench::train(options) : bench::encode(options); };
  write_all(STDOUT_FILENO, (loaded.text ? *loaded.text : json_text(measure())) + "\n");
}
