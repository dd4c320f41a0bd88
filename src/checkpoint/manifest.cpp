#include "checkpoint/manifest.h"

#include <tandem/error.h>

#include <cmath>
#include <limits>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"

namespace tandem {
namespace {

constexpr const char* kFormat = "tandem checkpoint 1";

std::int64_t read_up_to(const Json& json, std::string_view name, std::int64_t limit) {
  const std::int64_t count = json.at(name).as_integer();
  if (count < 0 || count > limit) fail(ErrorKind::Data, str("its ", name, " is ", count), "");
  return count;
}

// A file of the folder itself, not a path.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == name.npos;
}

Manifest from_json(const Json& json) {
  if (json.at("format").as_string() != kFormat) {
    fail(ErrorKind::Data, str("unknown format '", json.at("format").as_string(), "', expected '", kFormat, "'"), "");
  }
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  Manifest manifest{.step = read_up_to(json, "step", kMaxStep), .number = read_up_to(json, "number", kMaxNumber)};
  if (const Json* metric = json.find("metric")) manifest.metric = metric->as_double();
  for (const auto& [name, facts] : json.at("files").as_object()) {
    if (!is_plain_name(name)) fail(ErrorKind::Data, str("'", name, "' is not a file name"), "");
    const auto size = static_cast<std::uint64_t>(read_up_to(facts, "size", kMax));
    const auto crc32c =
        static_cast<std::uint32_t>(read_up_to(facts, "crc32c", std::numeric_limits<std::uint32_t>::max()));
    manifest.files.push_back({.name = name, .size = size, .crc32c = crc32c});
  }
  if (manifest.files.empty()) fail(ErrorKind::Data, "it lists no files", "");
  return manifest;
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  Json::Object files;
  for (const Manifest::File& file : manifest.files) {
    files.emplace_back(file.name, Json::Object{{"size", static_cast<std::int64_t>(file.size)},
                                               {"crc32c", static_cast<std::int64_t>(file.crc32c)}});
  }
  Json::Object json{{"format", kFormat}, {"step", manifest.step}, {"number", manifest.number}};
  if (manifest.metric && std::isfinite(*manifest.metric)) json.emplace_back("metric", *manifest.metric);
  json.emplace_back("files", std::move(files));
  return json_text_indented(Json(std::move(json))) + "\n";
}

Manifest parse_manifest(std::string_view text, std::string_view where) {
  try {
    return from_json(parse_json(text, kManifestFile));
  } catch (const Error& error) {
    fail(ErrorKind::Checkpoint, str(where, " is invalid: ", error.message()),
         "use another checkpoint: this one is damaged or from another version");
  }
}

Manifest read_manifest(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint / kManifestFile;
  return parse_manifest(read_regular_file(path, ErrorKind::Checkpoint), path.native());
}

}  // namespace tandem
