#include <tandem/config.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/fd.h"
#include "base/text.h"
#include "recipes/summarize/commands.h"
#include "text/csv.h"
#include "text/tokenizer.h"
#include "text/train_vocabulary.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

struct TrainOptions {
  std::int64_t size = 50257;
  std::int64_t min_count = 2;
  fs::path output = {};
  ColumnOptions columns = {};
};

template <class Visitor>
void visit_fields(TrainOptions& o, Visitor&& field) {
  field("size", o.size, "tokens: 256 bytes, <|endoftext|>, and what is merged");
  field("min-count", o.min_count, "a pair that is seen less often is not merged");
  field("output", o.output, "folder to write vocab.json, merges.txt and tokenizer.json to");
  field("", o.columns, "of a file that ends in .csv, the columns to learn from");
}

void validate(const TrainOptions& o) {
  if (o.output.empty()) fail(ErrorKind::Config, "output is empty", "name a folder: --output tokenizer");
  if (fs::exists(o.output)) {
    fail(ErrorKind::Config, str("output is ", o.output, ", which is there already"), "name another, or remove it");
  }
  if (o.size < 257) fail(ErrorKind::Config, str("size is ", o.size), "give at least 257: the bytes and <|endoftext|>");
  if (o.min_count < 1) fail(ErrorKind::Config, str("min-count is ", o.min_count), "give at least 1");
}

void add_texts(Words& texts, const fs::path& path, const ColumnOptions& columns) {
  if (path.extension() != ".csv") return texts.push_back(read_file(path));
  for (SummarySample& row : read_rows(path, columns, Needs::Summary)) {
    texts.push_back(std::move(row.dialogue));
    texts.push_back(std::move(row.summary));
  }
}

std::string train(const Words& words) {
  TrainOptions options;
  const ProgramText program{"tandem summarize tokenizer train",
                            "file [file ...]",
                            "Trains a byte-level BPE as GPT-2 has it, on texts or on the columns of CSVs.",
                            {"tandem summarize tokenizer train --size 8192 --output tokenizer train.csv"}};
  const LoadedConfig loaded = load_mixed(options, std::span(words).subspan(3), program);
  if (loaded.text) return *loaded.text;
  if (loaded.rest.empty()) fail(ErrorKind::Usage, "tokenizer train: no file was named", "name texts, or CSVs");
  Words texts;
  for (const std::string& path : loaded.rest) add_texts(texts, path, options.columns);
  const Tokenizer tokenizer(train_vocabulary(texts, {.size = options.size, .min_count = options.min_count}));
  make_new_folder(options.output, [&](const fs::path& folder) { tokenizer.save(folder); });
  return str("wrote ", tokenizer.size(), " tokens to ", options.output, '\n');
}

struct UseOptions {
  fs::path tokenizer = {};
};

template <class Visitor>
void visit_fields(UseOptions& o, Visitor&& field) {
  field("tokenizer", o.tokenizer, "folder of the tokenizer, or of a run");
}

void validate(const UseOptions& o) {
  if (o.tokenizer.empty()) fail(ErrorKind::Config, "tokenizer is empty", "name its folder: --tokenizer FOLDER");
}

std::string encode_line(Tokenizer& tokenizer, std::string_view line) {
  Words ids;
  for (const TokenId id : tokenizer.encode(line)) ids.push_back(str(id));
  return join(ids, " ");
}

std::string decode_line(Tokenizer& tokenizer, std::string_view line) {
  std::vector<TokenId> ids;
  for (const std::string& word : split(line, ' ')) {
    if (trim(word).empty()) continue;
    const auto id = to_integer(trim(word));
    if (!id || *id < 0 || *id >= tokenizer.size()) {
      fail(ErrorKind::Data, str("tokenizer decode: '", word, "' is no token"),
           str("give whole numbers from 0 to ", tokenizer.size() - 1, ", with spaces between them"));
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return tokenizer.decode(ids);
}

std::string use(const Words& words, const char* about, std::string (*convert)(Tokenizer&, std::string_view)) {
  UseOptions options;
  const std::string name = str("tandem summarize tokenizer ", words[2]);
  const ProgramText program{name, "", about, {str(name, " --tokenizer FOLDER < lines.txt")}};
  const LoadedConfig loaded = load_config(options, std::span(words).subspan(3), program);
  if (loaded.text) return *loaded.text;
  Tokenizer tokenizer = Tokenizer::load(tokenizer_folder(options.tokenizer));
  auto text = read_all(STDIN_FILENO);
  if (!text) fail(ErrorKind::Data, str("cannot read standard input: ", errno_text(errno)), "pipe a file in");
  if (text->ends_with('\n'))
    text->pop_back();
  else if (text->empty())
    return "";
  std::string lines;
  for (const std::string& line : split(*text, '\n')) lines += str(convert(tokenizer, line), '\n');
  return lines;
}

std::string run(const Words& words) {
  const std::string name = words.size() > 2 ? words[2] : "--help";
  if (name == "train") return train(words);
  if (name == "encode") return use(words, "Turns lines of standard input into lines of ids.", encode_line);
  if (name == "decode") return use(words, "Turns lines of ids into text.", decode_line);
  if (name == "--help" || name == "-h") return "usage: tandem summarize tokenizer train|encode|decode [flags]\n";
  fail(ErrorKind::Usage, str("tokenizer: there is no command '", name, "'"), "it is train, encode or decode");
}

}  // namespace

int run_tokenizer(const Words& words) {
  return run_command([&] { return run(words); });
}

}  // namespace tandem
