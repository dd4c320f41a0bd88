#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>

#include "base/text.h"
#include "image/codec.h"
#include "monitor/append_file.h"
#include "monitor/event_record.h"
#include "monitor/tensorboard.h"

namespace tandem {
namespace {

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// TensorBoard reads files with "tfevents" in the name, in the order of their names.
std::string file_name() {
  static std::atomic<int> count = 0;
  return str("events.out.tfevents.", static_cast<std::int64_t>(unix_seconds()), '.', host_name(), '.', ::getpid(), '.',
             count++);
}

std::string png_of(const ImageView& view) {
  check_size(view.height, view.width, view.num_channels);
  Image image;
  image.height = static_cast<int>(view.height);
  image.width = static_cast<int>(view.width);
  image.channels = static_cast<int>(view.num_channels);
  image.pixels.assign(view.pixels.begin(), view.pixels.end());
  return encode_png(image);
}

}  // namespace

TensorBoard::TensorBoard(const std::filesystem::path& folder, std::int64_t first_step)
    : file_(std::make_unique<AppendFile>(folder / file_name())) {
  file_->append(framed(version_event(unix_seconds())));
  file_->append(framed(start_event(unix_seconds(), first_step)));
}

TensorBoard::TensorBoard(TensorBoard&&) noexcept = default;
TensorBoard& TensorBoard::operator=(TensorBoard&&) noexcept = default;
TensorBoard::~TensorBoard() = default;

void TensorBoard::scalar(std::string_view tag, double value, std::int64_t step) {
  file_->append(framed(value_event(unix_seconds(), step, tag, scalar_value(value))));
}

void TensorBoard::text(std::string_view tag, std::string_view markdown, std::int64_t step) {
  file_->append(framed(value_event(unix_seconds(), step, tag, text_value(markdown))));
}

void TensorBoard::image(std::string_view tag, const ImageView& image, std::int64_t step) {
  const std::string value = image_value(image.height, image.width, image.num_channels, png_of(image));
  file_->append(framed(value_event(unix_seconds(), step, tag, value)));
}

std::string tensorboard_command(const std::filesystem::path& folder) { return str("tensorboard --logdir ", folder); }

}  // namespace tandem
