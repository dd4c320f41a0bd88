#pragma once

#include <array>
#include <csetjmp>
#include <type_traits>

#include <png.h>

namespace tandem {

// Where libpng jumps to when it gives up. Between the jump and its target lie C frames and `step` alone.
struct PngErrors {
  std::jmp_buf jump = {};
  std::array<char, 200> message = {};
};

// What libpng is given: the first with a PngErrors as its pointer.
[[noreturn]] void give_up_png(png_structp png, png_const_charp message);
void ignore_warning(png_structp png, png_const_charp message);

// Whether `step` came to its end. It may have no local with a destructor: a jump out of it runs none.
template <class Step>
bool run_step(PngErrors& errors, const Step& step) {
  static_assert(std::is_trivially_destructible_v<Step>);
  if (setjmp(errors.jump) != 0) return false;
  step();
  return true;
}

}  // namespace tandem
