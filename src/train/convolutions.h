#pragma once

namespace tandem {

// How cuDNN chooses the algorithms of convolutions in this process, to be called before the first of them:
// deterministic ones, so that a resumed run has the same bits, by its second heuristic. By the first, a dilated
// convolution of DeepLab takes a thousand times as long on an H200.
void choose_convolutions();

}  // namespace tandem
