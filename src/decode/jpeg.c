/* Decodes one JPEG held in memory to 8-bit RGB with libjpeg's own interface.
 *
 * This is C because libjpeg reports fatal errors by a function that must not return, which only
 * setjmp leaves safely. The source is a suspending one that never has more data: libjpeg then says
 * itself whether the bytes ran out before the last row, as it does for Pillow, in place of making
 * up an end of image. Nothing is kept between images: tables that one file leaves behind would
 * otherwise decode the next file that lacks them.
 */

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

/* Rows asked for at once: the most that one row of 4:2:0 blocks gives. */
#define ROWS 16

/* What became of an image; `Status` in jpeg.rs. */
enum { DECODED, TRUNCATED, BROKEN, STOPPED };

/* What the file says of itself; `Header` in jpeg.rs. */
struct fastload_jpeg_header {
  unsigned width, height, components;
};

struct errors {
  struct jpeg_error_mgr manager; /* first: libjpeg holds a pointer to it */
  jmp_buf escape;
  char *message;
};

static void fail(j_common_ptr image) {
  struct errors *errors = (struct errors *)image->err;
  image->err->format_message(image, errors->message);
  longjmp(errors->escape, 1);
}

static void ignore_message(j_common_ptr image) { (void)image; }

static void ignore_event(j_decompress_ptr image) { (void)image; }

static boolean suspend(j_decompress_ptr image) {
  (void)image;
  return FALSE;
}

static void skip(j_decompress_ptr image, long count) {
  struct jpeg_source_mgr *source = image->src;
  size_t bytes = count > 0 ? (size_t)count : 0;
  if (bytes > source->bytes_in_buffer) bytes = source->bytes_in_buffer;
  source->next_input_byte += bytes;
  source->bytes_in_buffer -= bytes;
}

static int decode(j_decompress_ptr image, unsigned char *pixels, size_t capacity,
                  struct fastload_jpeg_header *header) {
  int status;
  do {
    status = jpeg_read_header(image, FALSE);
  } while (status == JPEG_HEADER_TABLES_ONLY);
  if (status == JPEG_SUSPENDED) return TRUNCATED;

  header->width = image->image_width;
  header->height = image->image_height;
  header->components = (unsigned)image->num_components;
  const size_t stride = (size_t)image->image_width * 3;
  if (image->num_components != 1 && image->num_components != 3) return STOPPED;
  if (image->image_height > capacity / stride) return STOPPED; /* stride is not 0 */

  image->out_color_space = JCS_RGB;
  if (!jpeg_start_decompress(image)) return TRUNCATED;
  while (image->output_scanline < image->output_height) {
    JSAMPROW rows[ROWS];
    const unsigned left = image->output_height - image->output_scanline;
    const unsigned wanted = left < ROWS ? left : ROWS;
    for (unsigned row = 0; row < wanted; row++) {
      rows[row] = pixels + (image->output_scanline + row) * stride;
    }
    if (jpeg_read_scanlines(image, rows, wanted) == 0) return TRUNCATED;
  }
  /* All rows are there: a missing end of image is no loss, a broken one is an error. */
  (void)jpeg_finish_decompress(image);
  return DECODED;
}

/* Decodes `data` into `pixels` as rows of RGB without padding, grey as equal red, green and blue.
 *
 * `header` is filled as soon as it is known, and `message` (JMSG_LENGTH_MAX bytes) when the result
 * is BROKEN. STOPPED: nothing was decoded, because `header` tells of neither grey nor three colours
 * or `capacity` bytes do not hold the image.
 */
int fastload_jpeg_decode(const unsigned char *data, size_t length, unsigned char *pixels,
                         size_t capacity, struct fastload_jpeg_header *header, char *message) {
  struct jpeg_decompress_struct image;
  struct jpeg_source_mgr source;
  struct errors errors;

  memset(&image, 0, sizeof image);
  memset(&source, 0, sizeof source);
  image.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = fail;
  errors.manager.output_message = ignore_message;
  errors.message = message;
  if (setjmp(errors.escape)) {
    jpeg_destroy_decompress(&image);
    return BROKEN;
  }

  jpeg_create_decompress(&image);
  source.next_input_byte = data;
  source.bytes_in_buffer = length;
  source.init_source = ignore_event;
  source.fill_input_buffer = suspend;
  source.skip_input_data = skip;
  source.resync_to_restart = jpeg_resync_to_restart;
  source.term_source = ignore_event;
  image.src = &source;

  const int status = decode(&image, pixels, capacity, header);
  jpeg_destroy_decompress(&image);
  return status;
}
