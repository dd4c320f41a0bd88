#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

constexpr const char* kManifestFile = "DONE";

// Greater numbers in a manifest are damage; one may be added to these.
constexpr std::int64_t kMaxStep = 1'000'000'000'000'000;
constexpr std::int64_t kMaxNumber = 1'000'000'000'000'000;

// The contents of the file DONE, which marks a checkpoint as complete and lists its files.
struct Manifest {
  struct File {
    std::string name;
    std::uint64_t size = 0;
    std::uint32_t crc32c = 0;
  };

  std::int64_t step = 0;
  std::int64_t number = 0;  // incremented by each save to a folder, also after the run resumed from an older step
  std::optional<double> metric = std::nullopt;
  std::vector<File> files = {};
};

std::string manifest_text(const Manifest& manifest);

// An invalid manifest is an Error of kind Checkpoint.
Manifest parse_manifest(std::string_view text, std::string_view where);
Manifest read_manifest(const std::filesystem::path& checkpoint);

}  // namespace tandem
