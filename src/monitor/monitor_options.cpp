#include <tandem/run_options.h>

namespace tandem {

std::string Workload::rate() const {
  if (unit == "tokens") return "tok/s";
  return unit == "images" ? "img/s" : unit + "/s";
}

}  // namespace tandem
