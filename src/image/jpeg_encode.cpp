#include <tandem/error.h>

#include <array>
#include <cstdio>

#include <jerror.h>

#include "base/text.h"
#include "image/byte_sink.h"
#include "image/codec.h"
#include "image/jpeg_errors.h"

namespace tandem {
namespace {

// Gathers what libjpeg writes.
struct JpegOutput {
  jpeg_destination_mgr manager = {};  // the first member: libjpeg knows the address of this one alone
  std::array<unsigned char, 1 << 14> buffer = {};
  std::string* file = nullptr;
};

JpegOutput& output_of(j_compress_ptr info) { return *reinterpret_cast<JpegOutput*>(info->dest); }

void start_buffer(j_compress_ptr info) {
  JpegOutput& output = output_of(info);
  output.manager.next_output_byte = output.buffer.data();
  output.manager.free_in_buffer = output.buffer.size();
}

void flush(j_compress_ptr info, std::size_t count) {
  JpegOutput& output = output_of(info);
  if (append_bytes(*output.file, output.buffer.data(), count)) return;
  info->err->msg_code = JERR_OUT_OF_MEMORY;
  info->err->error_exit(reinterpret_cast<j_common_ptr>(info));
}

boolean empty_buffer(j_compress_ptr info) {
  flush(info, output_of(info).buffer.size());
  start_buffer(info);
  return TRUE;
}

void end_buffer(j_compress_ptr info) { flush(info, output_of(info).buffer.size() - info->dest->free_in_buffer); }

class JpegWriter {
 public:
  explicit JpegWriter(std::string& file) {
    info_.err = start_errors(errors_);
    output_.file = &file;
    output_.manager.init_destination = start_buffer;
    output_.manager.empty_output_buffer = empty_buffer;
    output_.manager.term_destination = end_buffer;
  }
  ~JpegWriter() { jpeg_destroy_compress(&info_); }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;

  void write(const Image& image, int quality) {
    const bool is_written = run_step(errors_, [&] {
      jpeg_create_compress(&info_);
      info_.dest = &output_.manager;
      set_size(image);
      jpeg_set_defaults(&info_);
      jpeg_set_quality(&info_, quality, TRUE);
      jpeg_start_compress(&info_, TRUE);
      while (info_.next_scanline < info_.image_height) {
        auto* row = const_cast<JSAMPROW>(image.pixels.data() + info_.next_scanline * image.row_size());
        jpeg_write_scanlines(&info_, &row, 1);
      }
      jpeg_finish_compress(&info_);
    });
    if (!is_written) {
      fail(ErrorKind::Data, str("cannot write a JPEG: ", errors_.message.data()), "is there memory left?");
    }
  }

 private:
  void set_size(const Image& image) {
    info_.image_height = static_cast<JDIMENSION>(image.height);
    info_.image_width = static_cast<JDIMENSION>(image.width);
    info_.input_components = image.channels;
    info_.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  }

  JpegErrors errors_;
  JpegOutput output_;
  jpeg_compress_struct info_ = {};
};

}  // namespace

std::string encode_jpeg(const Image& image, int quality) {
  check_image(image);
  if (image.channels == 4 || quality < 1 || quality > 100) {
    fail(ErrorKind::Data, str("a JPEG of ", image.channels, " channels and quality ", quality, " is asked for"),
         "give 1 or 3 channels, and a quality from 1 to 100");
  }
  std::string file;
  JpegWriter(file).write(image, quality);
  return file;
}

}  // namespace tandem
