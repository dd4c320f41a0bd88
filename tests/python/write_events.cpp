#include "monitor/tensorboard.h"

#include <string>
#include <vector>

// write_events FOLDER FIRST LAST: adds an event file in which the scalar `loss` of each step from FIRST to LAST is half
// the step, with a text and two images at step FIRST.
int main(int, char** argv) {
  const std::int64_t first = std::stoll(argv[2]);
  const std::int64_t last = std::stoll(argv[3]);
  tandem::TensorBoard board(argv[1], first);
  for (std::int64_t step = first; step <= last; ++step) board.scalar("loss/train", static_cast<double>(step) / 2, step);
  board.text("samples/摘要", "**bold** and 摘要", first);

  constexpr std::int64_t kHeight = 200;  // more than one block of 64 KiB
  constexpr std::int64_t kWidth = 301;
  std::vector<std::uint8_t> pixels;
  for (std::int64_t i = 0; i < kHeight * kWidth * 3; ++i) pixels.push_back(static_cast<std::uint8_t>(i % 251));
  board.image("images/colour", {.height = kHeight, .width = kWidth, .num_channels = 3, .pixels = pixels}, first);
  const std::vector<std::uint8_t> grey(6, 128);
  board.image("images/grey", {.height = 2, .width = 3, .num_channels = 1, .pixels = grey}, first);
  return 0;
}
