#include "train/convolutions.h"

#include <ATen/Context.h>

#include "base/worker_env.h"

namespace tandem {

void choose_convolutions() {
  at::globalContext().setDeterministicCuDNN(true);
  const char* second_heuristic = "TORCH_CUDNN_USE_HEURISTIC_MODE_B";  // torch reads it once
  if (!environment_variable(second_heuristic)) set_environment_variable(second_heuristic, "1");
}

}  // namespace tandem
