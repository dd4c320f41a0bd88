#include "recipes/summarize/token_cache.h"

#include <tandem/error.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "recipe/content_key.h"
#include "recipes/summarize/token_file.h"
#include "text/vocabulary_files.h"

namespace tandem::summarize {

namespace fs = std::filesystem;

fs::path token_path(const fs::path& folder, const SampleEncoder& encoder, std::span<const SummarySample> rows) {
  std::string all = str(tokenizer_json_text(encoder.tokenizer().vocabulary()), '\0', encoder.prompt().prefix, '\0',
                        encoder.prompt().marker, '\0', encoder.context());
  for (const SummarySample& row : rows) all += str('\0', row.dialogue, '\0', row.summary);
  return folder / content_key(all);
}

namespace {

std::optional<std::string> why_unusable(const fs::path& path) {
  try {
    const TokenFile file(path);
    return std::nullopt;
  } catch (const Error& error) {
    return error.message();
  }
}

void encode_to_file(const fs::path& path, SampleEncoder& encoder, std::span<const SummarySample> rows) {
  EncodingReport report{.num_rows = std::ssize(rows)};
  const std::int64_t cut_before = encoder.num_cut();
  const std::int64_t replaced_before = encoder.num_replaced();
  std::vector<EncodedSample> samples;
  for (const SummarySample& row : rows) {
    auto sample = encoder.encode(row.dialogue, row.summary);
    if (!sample) {
      ++report.num_skipped;
      continue;
    }
    samples.push_back(*std::move(sample));
  }
  report.num_cut = encoder.num_cut() - cut_before;
  report.num_replaced = encoder.num_replaced() - replaced_before;
  if (samples.empty()) {
    fail(ErrorKind::Data, str("there is no training data: ", report.skipped_text()),
         "give a larger --context, or shorter summaries");
  }
  write_token_file(path, samples, report);
}

}  // namespace

std::optional<std::string> make_token_file(const fs::path& path, SampleEncoder& encoder,
                                           std::span<const SummarySample> rows) {
  std::error_code unknown;
  const bool is_there = fs::exists(fs::symlink_status(path, unknown));
  auto damage = is_there ? why_unusable(path) : std::nullopt;
  if (is_there && !damage) return std::nullopt;
  if (is_there) fs::remove_all(path, unknown);  // a file would be replaced, but not a folder or a pipe
  encode_to_file(path, encoder, rows);
  return damage;
}

}  // namespace tandem::summarize
