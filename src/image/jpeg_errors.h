#pragma once

#include <array>
#include <csetjmp>
#include <cstdio>
#include <type_traits>

#include <jpeglib.h>

namespace tandem {

// Where libjpeg jumps to when it gives up. Between the jump and its target lie C frames and `step` alone.
struct JpegErrors {
  jpeg_error_mgr manager = {};
  std::jmp_buf jump = {};
  std::array<char, JMSG_LENGTH_MAX> message = {};
};

// What libjpeg is given as its `err`: every error, and every warning of damaged pixels, ends the step.
jpeg_error_mgr* start_errors(JpegErrors& errors);

// Whether `step` came to its end. It may have no local with a destructor: a jump out of it runs none.
template <class Step>
bool run_step(JpegErrors& errors, const Step& step) {
  static_assert(std::is_trivially_destructible_v<Step>);
  if (setjmp(errors.jump) != 0) return false;
  step();
  return true;
}

}  // namespace tandem
