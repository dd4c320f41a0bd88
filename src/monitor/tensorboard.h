#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

// 8-bit pixels, row by row: grey or RGB.
struct ImageView {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t num_channels = 3;
  std::span<const std::uint8_t> pixels;
};

// Writes a TensorBoard event file. Each value is in the file when the call returns; readers ignore a partial last
// record. A failed write is an Error of kind Data. Used by one rank of a run.
class TensorBoard {
 public:
  // Each start of a run adds a file to the folder. TensorBoard discards values of older files from `first_step` on,
  // which a resumed run computes again.
  explicit TensorBoard(const std::filesystem::path& folder, std::int64_t first_step = 0);
  TensorBoard(TensorBoard&&) noexcept;
  TensorBoard& operator=(TensorBoard&&) noexcept;
  ~TensorBoard();

  // Tags ("loss/train") and texts are UTF-8; tags with the same prefix are grouped.
  void scalar(std::string_view tag, double value, std::int64_t step);
  void text(std::string_view tag, std::string_view markdown, std::int64_t step);
  void image(std::string_view tag, const ImageView& image, std::int64_t step);

 private:
  std::unique_ptr<class AppendFile> file_;
};

// "tensorboard --logdir runs/demo"
std::string tensorboard_command(const std::filesystem::path& folder);

}  // namespace tandem
