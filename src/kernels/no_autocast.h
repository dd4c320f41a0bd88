#pragma once

#include <ATen/autocast_mode.h>

namespace tandem {

// Turns autocast off for code that chooses its types itself; autocast would cast every operand again.
class NoAutocast {
 public:
  explicit NoAutocast(at::DeviceType device) : device_(device), before_(at::autocast::is_autocast_enabled(device)) {
    at::autocast::set_autocast_enabled(device_, false);
  }
  NoAutocast(const NoAutocast&) = delete;
  NoAutocast& operator=(const NoAutocast&) = delete;
  ~NoAutocast() { at::autocast::set_autocast_enabled(device_, before_); }

 private:
  at::DeviceType device_;
  bool before_;
};

}  // namespace tandem
