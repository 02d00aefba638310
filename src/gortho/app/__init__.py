"""`gortho app`: a page on this machine where a file is dropped and an answer is read (extra ``app``)."""
